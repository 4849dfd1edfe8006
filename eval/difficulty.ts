import { readFileSync } from "node:fs";
import { loadDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { sample } from "../src/engine/difficulty/sample.ts";
import {
  decodeScorer,
  type Features,
  featureScore,
  features,
  type Scorer,
  score,
} from "../src/engine/difficulty/scorer.ts";
import { type Curve, curve } from "./curve.ts";
import { choose, type RecordedFile } from "./data.ts";
import { fitScorer, type Sample } from "./difficulty-fit.ts";
import type { Row } from "./recording.ts";
import { shuffled } from "./shuffle.ts";

/** How well difficulty orders questions. Shares of 1; null if the file does not allow the figure. */
export interface DifficultyPart {
  apgr: number;
  cpt50: number;
  cpt80: number;
  /** Each group rated by a scorer that was trained without it. Null for a single group and for the committed scorer. */
  apgr_groups_held_out: number | null;
  /** With the plain features alone, without n-grams. */
  apgr_features_only: number;
  rows: number;
  weak: string;
  strong: string;
  /** Trained on each other file of the run and tested on this one. */
  trained_on?: Record<string, number>;
}

/** Rows of a file on which both models ran, with their samples for training. Features come from the prompt alone. */
export interface Routed {
  rows: Row[];
  samples: Sample[];
  weak: string;
  strong: string;
}

export interface DifficultyResult {
  part: DifficultyPart;
  /** Difficulty of a row, from a scorer that was not trained on the row. The committed scorer may have been. */
  difficulty: (row: Row) => number;
}

const FOLDS = 5;
/** Most folds of groups. With more groups, several are held out together. */
const GROUP_FOLDS = 60;
/** Files with fewer rows are split several times and the figures averaged, because they depend on the split. */
const REPEATS = { rows: 2000, times: 5 };

/** Builds the samples of a file for its weak and strong model. @returns a sentence if the file has no such pair */
export function routed(
  file: RecordedFile,
  requested: { weak: readonly string[]; strong: string | undefined },
): Routed | string {
  const models = choose(file, requested);
  if (typeof models === "string") return models;
  const [weak = "", strong] = [models.weak[0], models.strong];
  const rows = file.rows.filter((row) => row.models[weak] && row.models[strong]);
  const samples = rows.map((row) => ({
    features: features(sample(row.prompt), row.prompt.length),
    gain: (row.models[strong]?.score ?? 0) - (row.models[weak]?.score ?? 0),
    set: file.name,
  }));
  return { rows, samples, weak, strong };
}

/**
 * Measures how well difficulty finds the questions on which the strong model is better.
 * @param others further files; a scorer is trained on each and tested on this file
 * @param shipped measures this scorer instead of training one
 * @returns a sentence if the file does not allow a measurement
 */
export function difficultyPart(
  on: Routed,
  others: ReadonlyMap<string, Routed>,
  shipped?: Scorer,
): DifficultyResult | string {
  const { rows, samples, weak, strong } = on;
  const reached = (scores: readonly number[]) => curveOf(on, scores);
  if (rows.length < 2 * FOLDS)
    return `Rows with scores of both ${weak} and ${strong}: ${rows.length}; at least ${2 * FOLDS} are needed.`;
  const random = reached(rows.map(() => 0));
  if (!random) return `${strong} is not better than ${weak} on this file, so routing between them gains nothing.`;
  const trained_on = Object.fromEntries(
    [...others].map(([name, other]) => [name, reached(scored(fitScorer(other.samples), samples))?.apgr ?? 0]),
  );
  const common = { rows: rows.length, weak, strong, ...(others.size > 0 && { trained_on }) };
  if (shipped) {
    // Rates as the service does, including explicit demands in the words of a prompt.
    const rater = loadDifficultyRater();
    const difficulty = (row: Row) => rater.rate(row.prompt).difficulty;
    const main = reached(rows.map(difficulty)) ?? random;
    const plain = reached(samples.map((sample) => featureScore(shipped, sample.features))) ?? random;
    return {
      part: { ...main, apgr_groups_held_out: null, apgr_features_only: plain.apgr, ...common },
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
      apgr_features_only: average(runs.map((run) => reached(run.plain)?.apgr ?? random.apgr)),
      ...common,
    },
    difficulty: (row) => difficulties.get(row) ?? 0,
  };
}

/** Scores every sample with a scorer that was trained on the other folds; `plain` uses the plain features alone. */
export function heldOut(samples: readonly Sample[], fold: readonly number[]): { scores: number[]; plain: number[] } {
  const [scores, plain] = [samples.map(() => 0), samples.map(() => 0)];
  for (const out of new Set(fold)) {
    const scorer = fitScorer(samples.filter((_, at) => fold[at] !== out));
    for (const [at, { features }] of samples.entries()) {
      if (fold[at] !== out) continue;
      scores[at] = score(scorer, features).score;
      plain[at] = featureScore(scorer, features);
    }
  }
  return { scores, plain };
}

/** Assigns a fold, from 0, to each key at random. Equal keys share a fold; the same seed gives the same folds. */
export function folds(keys: readonly string[], number: number, seed: number): number[] {
  const fold = new Map(shuffled([...new Set(keys)], seed).map((key, at) => [key, at % number]));
  return keys.map((key) => fold.get(key) ?? 0);
}

/**
 * The curve of routing rows with the highest scores to the strong model first. Undefined if that model is not better.
 */
export function curveOf({ rows, weak, strong }: Routed, scores: readonly number[]): Curve | undefined {
  return curve(
    rows.map((row, at) => ({
      weak: row.models[weak]?.score ?? 0,
      strong: row.models[strong]?.score ?? 0,
      rank: [scores[at] ?? 0],
    })),
  );
}

/** The committed scorer. */
export function shippedScorer(): Scorer {
  return decodeScorer(readFileSync(new URL("../src/engine/difficulty/weights.bin", import.meta.url)));
}

function scored(scorer: Scorer, samples: ReadonlyArray<{ features: Features }>): number[] {
  return samples.map(({ features }) => score(scorer, features).score);
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
