import { closedAnswer } from "../src/engine/fuse/closed-answer.ts";
import type { Choice, Row } from "./recording.ts";
import { unread } from "./replay.ts";

/** Folds of cross-fitting. */
const FOLDS = 5;

/** The weak models that a cascade asks, at most two, each once. */
export function pairOf({ weak, strong }: Choice): string[] {
  return [...new Set(weak)].filter((name) => name !== strong).slice(0, 2);
}

/** Questions on which every one of the models ran; a model that never ran has not failed. */
export function ranOn(rows: readonly Row[], names: readonly string[]): Row[] {
  return rows.filter(({ models }) => names.every((name) => models[name]));
}

/** Whether every one of the models gave an answer that could be read; missing ones flatter a vote. */
export function isAnswered({ models }: Row, names: readonly string[]): boolean {
  return names.every((name) => models[name]?.answer?.trim());
}

/** The score of an answer: that of a recorded answer which says the same; 0 where no model said it. */
export function scoreOf({ models }: Row, text: string, names: readonly string[]): number {
  const exact = names.find((name) => (models[name]?.answer ?? unread(name)) === text);
  if (exact !== undefined) return models[exact]?.score ?? 0;
  const form = closedAnswer(text);
  const same = form === undefined ? undefined : names.find((name) => closedAnswer(models[name]?.answer ?? "") === form);
  return same === undefined ? 0 : (models[same]?.score ?? 0);
}

/** Mean recorded score of a model; 0 for no rows. */
export function accuracyOf(rows: readonly Row[], name: string): number {
  return mean(rows.map(({ models }) => models[name]?.score ?? 0));
}

/**
 * What the engine may know of a model when it answers a row: its share of right answers, 0 to 1, on the rows of other folds. Scores up to 10 count as tenths.
 * @param block rows that follow each other and share a fold
 */
export function knownAccuracy(rows: readonly Row[], name: string, block = 1): (index: number) => number | undefined {
  const scale = rows.some(({ models }) => (models[name]?.score ?? 0) > 1) ? 10 : 1;
  const foldOf = (index: number) => Math.floor(index / block) % FOLDS;
  const byFold = Array.from({ length: FOLDS }, (_, fold) => {
    const others = rows.filter((_, index) => foldOf(index) !== fold);
    return others.length > 0 ? accuracyOf(others, name) / scale : undefined;
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
