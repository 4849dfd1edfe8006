import { closedAnswer } from "../src/engine/fuse/closed-answer.ts";
import type { Choice, Row } from "./recording.ts";
import { unread } from "./replay.ts";

/** Folds of cross-fitting. */
const FOLDS = 5;

/** The weak models of the cascade: at most two different ones. */
export function pairOf({ weak, strong }: Choice): string[] {
  return [...new Set(weak)].filter((name) => name !== strong).slice(0, 2);
}

/** Questions on which all the models ran. A model that did not run must not count as failed. */
export function ranOn(rows: readonly Row[], names: readonly string[]): Row[] {
  return rows.filter(({ models }) => names.every((name) => models[name]));
}

/** Whether all models gave an answer that could be parsed. Missing answers make a vote look better than it is. */
export function isAnswered({ models }: Row, names: readonly string[]): boolean {
  return names.every((name) => models[name]?.answer?.trim());
}

/** The score of an answer: that of an equivalent recorded answer; 0 if there is none. */
export function scoreOf({ models }: Row, text: string, names: readonly string[]): number {
  const exact = names.find((name) => (models[name]?.answer ?? unread(name)) === text);
  if (exact !== undefined) return models[exact]?.score ?? 0;
  const closed = closedAnswer(text);
  const same =
    closed === undefined ? undefined : names.find((name) => closedAnswer(models[name]?.answer ?? "") === closed);
  return same === undefined ? 0 : (models[same]?.score ?? 0);
}

/** Mean recorded score of a model; 0 for no rows. */
export function accuracyOf(rows: readonly Row[], name: string): number {
  return mean(rows.map(({ models }) => models[name]?.score ?? 0));
}

/**
 * Accuracy of a model on the rows of the other folds, 0 to 1, by row index. It does not use the row that is scored.
 * Scores up to 10 count as tenths. Two further rows, one right and one wrong, keep few rows from giving 0 or 1.
 * @param block number of consecutive rows that share a fold
 */
export function knownAccuracy(rows: readonly Row[], name: string, block = 1): (index: number) => number | undefined {
  const scale = rows.some(({ models }) => (models[name]?.score ?? 0) > 1) ? 10 : 1;
  const foldOf = (index: number) => Math.floor(index / block) % FOLDS;
  const byFold = Array.from({ length: FOLDS }, (_, fold) => {
    const others = rows.filter((_, index) => foldOf(index) !== fold);
    const right = (accuracyOf(others, name) / scale) * others.length;
    return others.length > 0 ? (right + 1) / (others.length + 2) : undefined;
  });
  return (index) => byFold[foldOf(index)];
}

/** Mean of paired differences with its 95 % interval, by the normal approximation. */
export function paired(differences: readonly number[]): { gain: number; low: number; high: number } {
  const gain = mean(differences);
  const spread = differences.reduce((sum, each) => sum + (each - gain) ** 2, 0);
  const margin = (1.96 * Math.sqrt(spread)) / Math.max(1, differences.length);
  return { gain, low: gain - margin, high: gain + margin };
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, each) => sum + each, 0) / values.length;
}
