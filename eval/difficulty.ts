import { type DifficultyRater, loadDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { read } from "../src/engine/difficulty/reading.ts";
import { featureValues } from "../src/engine/difficulty/signals.ts";
import { type Curve, curve } from "./curve.ts";
import { choose, type RecordedFile } from "./data.ts";
import { fitWeights, type Sample } from "./difficulty-fit.ts";
import { raterOf } from "./held-out-rater.ts";
import type { Row } from "./recording.ts";
import { mean } from "./score.ts";
import { shuffled } from "./shuffle.ts";

/** How well difficulty orders questions. Shares of 1. */
export interface DifficultyPart {
  apgr: number;
  cpt50: number;
  cpt80: number;
  /** What the weights were fitted on: other files that share no prompt; without one, other folds of this file. */
  fitted_on: "other files" | "other folds" | "all files";
  /** With the fitted features alone, without the weights of demands and kinds that are set by hand. */
  apgr_features_only: number;
  /** Correlation of difficulty with the mean rate of failure of all models of the file. */
  correlation: number;
  /** Ceiling: weights fitted on this file, measured on the same rows. */
  apgr_fitted_on_itself: number;
  /** Ceiling of any rating: questions ordered by the recorded rate of failure. */
  apgr_failures_known: number;
  rows: number;
  weak: string;
  strong: string;
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
  /** Difficulty of a row, by weights that were not fitted on the row. The committed weights may have been. */
  difficulty: (row: Row) => number;
}

const FOLDS = 5;

/** Builds the samples of a file for its weak and strong model. @returns a sentence if the file has no such pair */
export function routed(
  file: RecordedFile,
  requested: { weak: readonly string[]; strong: string | undefined },
): Routed | string {
  const models = choose(file, requested);
  if (typeof models === "string") return models;
  const [weak = "", strong] = [models.weak[0], models.strong];
  const rows = file.rows.filter((row) => row.models[weak] && row.models[strong]);
  const scale = rows.some((row) => Object.values(row.models).some(({ score }) => score > 1)) ? 10 : 1;
  const samples = rows.map((row) => ({
    values: featureValues(read(row.prompt)),
    failure: 1 - mean(Object.values(row.models).map(({ score }) => score / scale)),
    set: file.name,
  }));
  return { rows, samples, weak, strong };
}

/**
 * Measures how well difficulty finds the questions on which the strong model is better.
 * @param others further files; the weights are fitted on those that share no prompt with this one
 * @param shipped measures the committed weights instead of fitting
 * @returns a sentence if the file does not allow a measurement
 */
export function difficultyPart(
  on: Routed,
  others: ReadonlyMap<string, Routed>,
  shipped = false,
): DifficultyResult | string {
  const { rows, samples, weak, strong } = on;
  if (rows.length < 2 * FOLDS)
    return `Rows with scores of both ${weak} and ${strong}: ${rows.length}; at least ${2 * FOLDS} are needed.`;
  const prompts = new Set(rows.map(promptKey));
  const foreign = [...others.values()].filter((other) => !other.rows.some((row) => prompts.has(promptKey(row))));
  const fitted_on = shipped ? "all files" : foreign.length > 0 ? "other files" : "other folds";
  const { rated, plain } = shipped
    ? rate(on, loadDifficultyRater(), [...others.values(), on])
    : foreign.length > 0
      ? rate(on, raterOf(foreign), foreign)
      : heldOut(on);
  const failures = samples.map(({ failure }) => failure);
  const reached = (scores: readonly number[]) => curveOf(on, scores);
  const itself = reached(rate(on, raterOf([on]), [on]).rated);
  const [figures, known] = [reached(rated), reached(failures)];
  if (!figures || !itself || !known)
    return `${strong} is not better than ${weak} on this file, so routing between them gains nothing.`;
  const difficulties = new Map(rows.map((row, at) => [row, rated[at] ?? 0]));
  const part: DifficultyPart = {
    ...figures,
    fitted_on,
    apgr_features_only: reached(plain)?.apgr ?? 0,
    correlation: correlation(rated, failures),
    apgr_fitted_on_itself: itself.apgr,
    apgr_failures_known: known.apgr,
    rows: rows.length,
    weak,
    strong,
  };
  return { part, difficulty: (row) => difficulties.get(row) ?? 0 };
}

/** Difficulties of the rows of a set, and their scores by features alone that are fitted on `sets`. */
function rate({ rows, samples }: Routed, rater: DifficultyRater, sets: readonly Routed[]) {
  const { features } = fitWeights(sets.flatMap((set) => set.samples));
  const score = ({ values }: Sample) =>
    features.reduce(
      (sum, { mean, deviation, weight }, at) => sum + (weight * ((values[at] ?? 0) - mean)) / deviation,
      0,
    );
  return { rated: rows.map(({ prompt }) => rater.rate(prompt).difficulty), plain: samples.map(score) };
}

/** Rates each row with weights that are fitted on the other folds. */
function heldOut(on: Routed): ReturnType<typeof rate> {
  const fold = folds(on.rows.map(promptKey), FOLDS, 1);
  const runs = Array.from({ length: FOLDS }, (_, out) => {
    const others = { ...on, samples: on.samples.filter((_, at) => fold[at] !== out) };
    return rate(on, raterOf([others]), [others]);
  });
  const pick = (key: "rated" | "plain") => on.rows.map((_, at) => runs[fold[at] ?? 0]?.[key][at] ?? 0);
  return { rated: pick("rated"), plain: pick("plain") };
}

/** Rows of two files with the same key ask the same question. */
function promptKey({ prompt }: Row): string {
  return prompt.slice(0, 80);
}

/** Assigns a fold, from 0, to each key at random. Equal keys share a fold; the same seed gives the same folds. */
export function folds(keys: readonly string[], number: number, seed: number): number[] {
  const fold = new Map(shuffled([...new Set(keys)], seed).map((key, at) => [key, at % number]));
  return keys.map((key) => fold.get(key) ?? 0);
}

/**
 * The curve of routing rows with the highest scores to the strong model first. Undefined if that model is not better.
 */
function curveOf({ rows, weak, strong }: Routed, scores: readonly number[]): Curve | undefined {
  return curve(
    rows.map((row, at) => ({
      weak: row.models[weak]?.score ?? 0,
      strong: row.models[strong]?.score ?? 0,
      rank: [scores[at] ?? 0],
    })),
  );
}

/** Pearson's correlation; 0 if one side does not vary. */
function correlation(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  const moment = (x: readonly number[], mx: number, y: readonly number[], my: number) =>
    x.reduce((sum, value, at) => sum + (value - mx) * ((y[at] ?? 0) - my), 0);
  const spread = Math.sqrt(moment(a, meanA, a, meanA) * moment(b, meanB, b, meanB));
  return spread > 0 ? moment(a, meanA, b, meanB) / spread : 0;
}
