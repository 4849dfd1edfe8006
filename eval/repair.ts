import { existsSync } from "node:fs";
import { member, parseJson, stringifyJson } from "../src/contract/json.ts";
import { closedAnswer } from "../src/engine/fuse/closed-answer.ts";
import { extractObject } from "../src/engine/structured/repair.ts";
import { type RecordedFile, readRecorded } from "./data.ts";
import type { Row } from "./recording.ts";

/** Raw output of a model. The prompt asked for `{"reasoning", "answer"}`, without a JSON mode of the vendor. */
export interface RawOutput {
  id: string;
  model: string;
  output: string;
}

export interface RepairPart {
  outputs: number;
  /** Share of outputs in which the engine finds no JSON object, 0 to 1. */
  unread: number;
  /** Number of the other outputs that have a recorded answer. */
  compared: number;
  /** Number of compared outputs whose answer differs from the recorded one. */
  wrong: number;
}

/**
 * Measures in how many raw outputs the engine finds an object, as for JSON that a prompt describes, and whether the
 * member `answer` equals the recorded answer.
 * @param rows recorded answers of the same questions; without them nothing is compared
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

/**
 * Recorded answers contain the last number of an answer, to six digits: 42 for `86 glasses and 42 plates`, 2.85714 for
 * `20/7`.
 */
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

/** Suffix of a file of raw outputs. The recorded answers are in the file without the suffix. */
const RAW = /-raw-outputs(?=\.jsonl?$)/;

/** Finds the recorded answers for raw outputs: in the other files of the run, else in the file without the suffix. */
export function originOf({ path, raw }: RecordedFile, files: readonly RecordedFile[]): Row[] {
  const ids = new Set(raw.map(({ id }) => id));
  const known = files.flatMap(({ rows }) => rows.filter(({ id }) => ids.has(id)));
  const origin = path.replace(RAW, "");
  return known.length === 0 && origin !== path && existsSync(origin) ? readRecorded(origin).rows : known;
}
