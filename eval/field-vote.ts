import { member, parseJson } from "../src/contract/json.ts";
import { closedAnswer } from "../src/engine/fuse/closed-answer.ts";
import { tally } from "../src/engine/fuse/vote.ts";
import { extractObject } from "../src/engine/structured/repair.ts";
import type { Choice, Recording, Row } from "./recording.ts";
import { type Player, replay } from "./replay.ts";
import { isAnswered, knownAccuracy, mean, paired, ranOn, scoreOf } from "./score.ts";
import { shuffled } from "./shuffle.ts";

/** Questions that are combined into one object. */
const FIELDS = 5;
/**
 * Number of groupings of files with few rows. The result of a single grouping depends on which questions share an
 * object.
 */
const GROUPINGS = 10;
const FEW_ROWS = 2_000;

/** Shares of objects in which every field is correct, paired by object. */
export interface FieldVoteFigures {
  /** Over all groupings. */
  objects: number;
  groupings: number;
  /** Of the member that is best on these objects. */
  best: number;
  /** Of the object that more than half of the members wrote; without a majority, that of the strongest member. */
  majority: number;
  /** Of the vote on each field. */
  accuracy: number;
  /** Gain of the field vote over the best member, with its 95 % interval, and over the majority of objects. */
  gain: number;
  low: number;
  high: number;
  gain_over_majority: number;
}

/**
 * Figures over all groupings. With several groupings, `file_order` has the figures of the grouping in the order of the
 * file.
 */
export type FieldVotePart = FieldVoteFigures & { all_answered: FieldVoteFigures; file_order?: FieldVoteFigures };

interface Scored {
  rows: readonly Row[];
  voted: number;
  majority: number;
  /** Score of each member, in the order of the panel. */
  single: number[];
}

/**
 * Measures the vote on JSON fields with simulated objects: five questions count as one request for an object with five
 * fields, and the recorded answers of a model are the fields of its object, null for no answer. Groups questions in the
 * order of the file and, for a file with few rows, nine more times at random. Uses the plan for JSON at level high,
 * with accuracies from other folds.
 * @returns undefined for fewer than two members, or if no object has all answers
 */
export async function fieldVotePart(all: readonly Row[], choice: Choice): Promise<FieldVotePart | undefined> {
  const panel = [...new Set(choice.panel)];
  const rows = ranOn(all, panel);
  if (panel.length < 2) return undefined;
  const orders = [rows];
  while (rows.length < FEW_ROWS && orders.length < GROUPINGS) orders.push(shuffled(rows, orders.length));
  const groupings: Scored[][] = [];
  for (const order of orders) groupings.push(await grouped(order, panel));
  const answered = groupings.map((scored) => scored.filter(({ rows }) => rows.every((row) => isAnswered(row, panel))));
  if (answered.every((scored) => scored.length === 0)) return undefined;
  return {
    ...figures(groupings),
    all_answered: figures(answered),
    ...(groupings.length > 1 && { file_order: figures(groupings.slice(0, 1)) }),
  };
}

async function grouped(rows: readonly Row[], panel: readonly string[]): Promise<Scored[]> {
  const known = panel.map((name) => knownAccuracy(rows, name, FIELDS));
  const scored: Scored[] = [];
  for (let start = 0; start + FIELDS <= rows.length; start += FIELDS) {
    const own = rows.slice(start, start + FIELDS);
    const crew = panel.map((name, at): Player => {
      const recording = { answer: objectOf(own.map(({ models }) => models[name])), score: 0 };
      return { name, tier: "strong", accuracy: known[at]?.(start), recording };
    });
    const { text } = await replay(crew, {
      prompt: own.map(({ prompt }, index) => `q${index + 1}: ${prompt}`).join("\n\n"),
      level: "high",
      shape: "extract",
      read: (text) => extractObject(text).structured ?? undefined,
    });
    const score = (object: string) => Math.min(...own.map((row, index) => fieldScore(row, object, index, panel)));
    scored.push({
      rows: own,
      voted: score(text),
      majority: score(wholeMajority(crew)),
      single: crew.map(({ recording }) => score(recording?.answer ?? "{}")),
    });
  }
  return scored;
}

/** Means over the groupings. They share their questions, so the interval stays as wide as that of a single grouping. */
function figures(groupings: readonly Scored[][]): FieldVoteFigures {
  const scored = groupings.flat();
  const accuracies = scored[0]?.single.map((_, at) => mean(scored.map(({ single }) => single[at] ?? 0))) ?? [];
  const best = Math.max(...accuracies);
  const at = accuracies.indexOf(best);
  const majority = mean(scored.map(({ majority }) => majority));
  const accuracy = mean(scored.map(({ voted }) => voted));
  const { gain, low, high } = paired(scored.map(({ voted, single }) => voted - (single[at] ?? 0)));
  const widening = Math.sqrt(groupings.length);
  return {
    objects: scored.length,
    groupings: groupings.length,
    best,
    majority,
    accuracy,
    gain,
    low: gain - (gain - low) * widening,
    high: gain + (high - gain) * widening,
    gain_over_majority: accuracy - majority,
  };
}

function objectOf(recordings: readonly (Recording | undefined)[]): string {
  return JSON.stringify(Object.fromEntries(recordings.map((each, index) => [`q${index + 1}`, each?.answer ?? null])));
}

function fieldScore(row: Row, object: string, index: number, panel: readonly string[]): number {
  const value = member(parseJson(object), `q${index + 1}`);
  return value?.kind === "scalar" && value.text.startsWith('"') ? scoreOf(row, JSON.parse(value.text), panel) : 0;
}

function wholeMajority(crew: readonly Player[]): string {
  const forms = crew.map(({ recording }) => {
    const values = Object.values<unknown>(JSON.parse(recording?.answer ?? "{}"));
    return JSON.stringify(values.map((value) => (typeof value === "string" ? (closedAnswer(value) ?? value) : null)));
  });
  const count = tally(
    forms.map((answer) => ({ answer, weight: 1 })),
    [],
  );
  const strongest = crew.toSorted((a, b) => (b.accuracy ?? 0) - (a.accuracy ?? 0))[0];
  const chosen = count && count.agreement > 0.5 ? crew[count.leader] : strongest;
  return chosen?.recording?.answer ?? "{}";
}
