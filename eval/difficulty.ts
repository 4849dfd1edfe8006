import { readFileSync } from "node:fs";
import { createDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import {
  decodeScorer,
  encodeScorer,
  type Features,
  featureScore,
  features,
  type Scorer,
  score,
} from "../src/engine/difficulty/scorer.ts";
import { type Curve, curve } from "./curve.ts";
import { choose, type RecordedFile } from "./data.ts";
import { fit, type Sample } from "./difficulty-fit.ts";
import type { Row } from "./recording.ts";
import { shuffled } from "./shuffle.ts";

/** Fractions of 1; null where the file cannot give the figure. */
export interface JudgePart {
  apgr: number;
  cpt50: number;
  cpt80: number;
  /** Each group in turn left out of training and then judged. Null with one group only, and for the committed judge. */
  apgr_groups_held_out: number | null;
  apgr_plain: number;
  rows: number;
  weak: string;
  strong: string;
  /** Trained on each other file of the run and tested on this one. */
  trained_on?: Record<string, number>;
}

/** Rows of a file that both models ran on, as training and testing take them. Only the prompt is read into features. */
export interface Routed {
  rows: Row[];
  samples: Sample[];
  weak: string;
  strong: string;
}

export interface Judged {
  part: JudgePart;
  /** Difficulty of a row by a judge that was not trained on it (except a committed one that was). */
  difficulty: (row: Row) => number;
}

const FOLDS = 5;
/** With more groups than this, several are held out together. */
const GROUP_FOLDS = 60;
/** Small files are split anew so often, and the figures averaged, because one split of 72 rows moves APGR by .02. */
const REPEATS = { rows: 2000, times: 5 };

/** Reads the features of a file for its weak and strong model. @returns a sentence where the file has no such pair */
export function routed(
  file: RecordedFile,
  asked: { weak: readonly string[]; strong: string | undefined },
): Routed | string {
  const models = choose(file, asked);
  if (typeof models === "string") return models;
  const [weak = "", strong] = [models.weak[0], models.strong];
  const rows = file.rows.filter((row) => row.models[weak] && row.models[strong]);
  const samples = rows.map((row) => ({
    features: features(row.prompt),
    gain: (row.models[strong]?.score ?? 0) - (row.models[weak]?.score ?? 0),
    set: file.name,
  }));
  return { rows, samples, weak, strong };
}

/**
 * How well the judge finds the questions on which the strong model is worth its price. `others` are further files, each trained on alone and tested here.
 * @returns a sentence where the file cannot tell
 */
export function judgePart(on: Routed, others: ReadonlyMap<string, Routed>, shipped?: Scorer): Judged | string {
  const { rows, samples, weak, strong } = on;
  const reached = (scores: readonly number[]) => curveOf(on, scores);
  if (rows.length < 2 * FOLDS)
    return `Rows with scores of both ${weak} and ${strong}: ${rows.length}; at least ${2 * FOLDS} are needed.`;
  const random = reached(rows.map(() => 0));
  if (!random) return `${strong} is no better than ${weak} here, so there is nothing to gain by routing between them.`;
  const heads = [...others].map(([name, other]) => [name, fit(other.samples)] as const);
  const trained_on = Object.fromEntries(heads.map(([name, head]) => [name, reached(scored(head, samples))?.apgr ?? 0]));
  const common = { rows: rows.length, weak, strong, ...(heads.length > 0 && { trained_on }) };
  if (shipped) {
    // As it is served, with what a prompt demands in words.
    const rater = createDifficultyRater(encodeScorer(shipped));
    const difficulty = (row: Row) => rater.rate(row.prompt).difficulty;
    const main = reached(rows.map(difficulty)) ?? random;
    const plain = reached(samples.map((sample) => featureScore(shipped, sample.features))) ?? random;
    return {
      part: { ...main, apgr_groups_held_out: null, apgr_plain: plain.apgr, ...common },
      difficulty,
    };
  }
  const repeats = rows.length < REPEATS.rows ? REPEATS.times : 1;
  const runs = Array.from({ length: repeats }, (_, seed) =>
    heldOut(
      samples,
      folds(
        rows.map((_, at) => String(at)),
        FOLDS,
        seed + 1,
      ),
    ),
  );
  const curves = runs.map((run) => reached(run.scores) ?? random);
  const groups = new Set(rows.map(({ group }) => group));
  const byGroup =
    groups.size > 1 &&
    heldOut(
      samples,
      folds(
        rows.map(({ group }) => group),
        Math.min(GROUP_FOLDS, groups.size),
        1,
      ),
    );
  const difficulties = new Map(rows.map((row, at) => [row, runs[0]?.scores[at] ?? 0]));
  return {
    part: {
      apgr: average(curves.map(({ apgr }) => apgr)),
      cpt50: average(curves.map(({ cpt50 }) => cpt50)),
      cpt80: average(curves.map(({ cpt80 }) => cpt80)),
      apgr_groups_held_out: byGroup ? (reached(byGroup.scores)?.apgr ?? null) : null,
      apgr_plain: average(runs.map((run) => reached(run.plain)?.apgr ?? random.apgr)),
      ...common,
    },
    difficulty: (row) => difficulties.get(row) ?? 0,
  };
}

/** Scores of every sample by a head that was trained on the other folds, and by its plain part alone. */
export function heldOut(samples: readonly Sample[], fold: readonly number[]): { scores: number[]; plain: number[] } {
  const [scores, plain] = [samples.map(() => 0), samples.map(() => 0)];
  for (const out of new Set(fold)) {
    const head = fit(samples.filter((_, at) => fold[at] !== out));
    for (const [at, { features }] of samples.entries()) {
      if (fold[at] !== out) continue;
      scores[at] = score(head, features).score;
      plain[at] = featureScore(head, features);
    }
  }
  return { scores, plain };
}

/** The fold, from 0, of each item, at random by the seed; items of one key share a fold. */
export function folds(keys: readonly string[], number: number, seed: number): number[] {
  const fold = new Map(shuffled([...new Set(keys)], seed).map((key, at) => [key, at % number]));
  return keys.map((key) => fold.get(key) ?? 0);
}

/** The curve of sending rows to the strong model in falling order of their scores; undefined where it gains nothing. */
export function curveOf({ rows, weak, strong }: Routed, scores: readonly number[]): Curve | undefined {
  return curve(
    rows.map((row, at) => ({
      weak: row.models[weak]?.score ?? 0,
      strong: row.models[strong]?.score ?? 0,
      rank: [scores[at] ?? 0],
    })),
  );
}

/** The committed head. */
export function shippedHead(): Scorer {
  return decodeScorer(readFileSync(new URL("../src/engine/difficulty/weights.bin", import.meta.url)));
}

function scored(head: Scorer, samples: ReadonlyArray<{ features: Features }>): number[] {
  return samples.map(({ features }) => score(head, features).score);
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
