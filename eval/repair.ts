import { existsSync } from "node:fs";
import { closedAnswer } from "../src/engine/fuse/closed-answer.ts";
import { extractObject } from "../src/engine/structured/repair.ts";
import { member, parseJson, stringifyJson } from "../src/json.ts";
import { type RecordedFile, readRecorded } from "./data.ts";
import type { Row } from "./recording.ts";

/** Raw output of a model that was asked for `{"reasoning", "answer"}` without any JSON mode. */
export interface RawOutput {
  id: string;
  model: string;
  output: string;
}

export interface RepairPart {
  outputs: number;
  /** Share of outputs in which no JSON object is read, 0 to 1. */
  unread: number;
  /** How many of the others have a recorded answer to be compared with. */
  compared: number;
  /** How many of these are read with another answer. */
  wrong: number;
}

/**
 * How many raw outputs the engine reads as an object, as it does for prompt-defined JSON, and whether their `answer` is the one that was recorded.
 * @param rows of the same origin, with the recorded answers; without them nothing is compared
 * @returns undefined without outputs
 */
export function repairPart(outputs: readonly RawOutput[], rows: readonly Row[]): RepairPart | undefined {
  if (outputs.length === 0) return undefined;
  const byId = new Map(rows.map((row) => [row.id, row]));
  let [unread, compared, wrong] = [0, 0, 0];
  for (const { id, model, output } of outputs) {
    const { structured } = extractObject(output);
    const recorded = byId.get(id)?.models[model]?.answer;
    if (structured === null) unread += 1;
    else if (typeof recorded === "string") {
      compared += 1;
      if (!isSame(answerOf(structured), recorded)) wrong += 1;
    }
  }
  return { outputs: outputs.length, unread: unread / outputs.length, compared, wrong };
}

function answerOf(object: string): string {
  const answer = member(parseJson(object), "answer");
  if (!answer) return "";
  const text = stringifyJson(answer);
  return text.startsWith('"') ? JSON.parse(text) : text;
}

/** The origin recorded the last number of an answer, to six digits: of `86 glasses and 42 plates` that is 42, of `20/7` it is 2.85714. */
function isSame(answer: string, recorded: string): boolean {
  const form = closedAnswer(answer);
  if (form !== undefined && form === closedAnswer(recorded)) return true;
  const [, over, under] = /^(-?\d+)\/(\d+)$/.exec(form ?? "") ?? [];
  const last = answer
    .replaceAll(",", "")
    .match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi)
    ?.at(-1);
  const values = [
    last === undefined ? undefined : Number(last),
    over && under ? Number(over) / Number(under) : undefined,
  ];
  return values.some((value) => value?.toPrecision(6) === Number(recorded).toPrecision(6));
}

/** Ending of a file of raw outputs; its questions are in the file of the same name without it. */
const RAW = /-raw-outputs(?=\.jsonl?$)/;

/** Rows with the recorded answers to a file's raw outputs: of the other files of the run, else of the file that stands beside it. */
export function originOf({ path, raw }: RecordedFile, files: readonly RecordedFile[]): Row[] {
  const ids = new Set(raw.map(({ id }) => id));
  const known = files.flatMap(({ rows }) => rows.filter(({ id }) => ids.has(id)));
  const beside = path.replace(RAW, "");
  return known.length === 0 && beside !== path && existsSync(beside) ? readRecorded(beside).rows : known;
}
