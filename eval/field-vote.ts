import { closedAnswer } from "../src/engine/fuse/closed.ts";
import { tally } from "../src/engine/fuse/vote.ts";
import { extractObject } from "../src/engine/structured/repair.ts";
import { member, parseJson } from "../src/json.ts";
import type { Choice, Recording, Row } from "./recording.ts";
import { type Player, replay } from "./replay.ts";
import { isAnswered, knownAccuracy, mean, paired, ranOn, scoreOf } from "./score.ts";

/** Questions that make one object. */
const FIELDS = 5;

/** Share of objects with every field right, paired by object. */
export interface FieldVoteFigures {
  objects: number;
  /** Of the best single member: the one that is best on these very objects. */
  best: number;
  /** Of the object that more than half of the members wrote alike, else the strongest member's. */
  majority: number;
  /** Of the vote field by field. */
  accuracy: number;
  /** Gain of the field vote over the best member, with its 95 % interval, and over the majority of whole objects. */
  gain: number;
  low: number;
  high: number;
  gain_over_majority: number;
}

export type FieldVotePart = FieldVoteFigures & { all_answered: FieldVoteFigures };

interface Scored {
  rows: readonly Row[];
  voted: number;
  majority: number;
  /** In the order of the panel. */
  single: number[];
}

/**
 * Votes on simulated objects: five questions that follow each other in the file are one request for an object with five fields, and what a model
 * answered to each is what it wrote into the field, null for no answer. The plan is that for JSON at level high; accuracies come from other folds.
 * @returns undefined for fewer than two members, or where no object has all answers
 */
export async function fieldVotePart(all: readonly Row[], choice: Choice): Promise<FieldVotePart | undefined> {
  const panel = [...new Set(choice.panel)];
  const rows = ranOn(all, panel);
  const known = panel.map((name) => knownAccuracy(rows, name, FIELDS));
  const scored: Scored[] = [];
  for (let start = 0; start + FIELDS <= rows.length && panel.length > 1; start += FIELDS) {
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
  const answered = scored.filter(({ rows }) => rows.every((row) => isAnswered(row, panel)));
  return answered.length === 0 ? undefined : { ...figures(scored), all_answered: figures(answered) };
}

function figures(scored: readonly Scored[]): FieldVoteFigures {
  const accuracies = scored[0]?.single.map((_, at) => mean(scored.map(({ single }) => single[at] ?? 0))) ?? [];
  const best = Math.max(...accuracies);
  const at = accuracies.indexOf(best);
  const majority = mean(scored.map(({ majority }) => majority));
  const accuracy = mean(scored.map(({ voted }) => voted));
  return {
    objects: scored.length,
    best,
    majority,
    accuracy,
    ...paired(scored.map(({ voted, single }) => voted - (single[at] ?? 0))),
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
    0,
  );
  const strongest = crew.toSorted((a, b) => (b.accuracy ?? 0) - (a.accuracy ?? 0))[0];
  const chosen = count && count.agreement > 0.5 ? crew[count.leader] : strongest;
  return chosen?.recording?.answer ?? "{}";
}
