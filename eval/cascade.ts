import { type Curve, curve } from "./curve.ts";
import type { Choice, Row } from "./recording.ts";
import { type Outcome, replay } from "./replay.ts";
import { accuracyOf, isAnswered, knownAccuracy, mean, paired, pairOf, ranOn, scoreOf } from "./score.ts";

/** Accuracy of the cascade and its share of calls of the strong model. Mean scores if scores are not 0 or 1. */
export interface CascadeFigures extends Partial<Curve> {
  rows: number;
  accuracy: number;
  strong_accuracy: number;
  /** Share of questions for which the strong model was called, 0 to 1. */
  strong_share: number;
  /** Gain over the strong model alone, paired by question, with the bounds of its 95 % interval. */
  gain: number;
  low: number;
  high: number;
}

export type CascadePart = CascadeFigures & { all_answered: CascadeFigures };

/** A question and the cascade's answer to it. */
interface Cascaded {
  row: Row;
  isEscalated: boolean;
  score: number;
  /** Score of the answer without a call of the strong model. */
  weakScore: number;
}

/**
 * Measures the plan for closed questions at level medium: two weak models answer; if they disagree, a strong model
 * does. The curve varies the share of strong calls. Questions on which the weak models disagree come first, and among
 * them the more difficult ones. Without a strong call, the weak model answers that is better on other folds.
 * @returns undefined if there are fewer than two weak models, or no question that all three answered
 */
export async function cascadePart(all: readonly Row[], choice: Choice): Promise<CascadePart | undefined> {
  const { strong, difficulty = () => 0 } = choice;
  const weak = pairOf(choice);
  if (strong === undefined || weak.length < 2) return undefined;
  const names = [...weak, strong];
  const rows = ranOn(all, names);
  if (!rows.some((row) => isAnswered(row, names))) return undefined;
  const cascaded: Cascaded[] = [];
  for await (const [row, outcome, better] of cascade(rows, weak, strong)) {
    const isEscalated = outcome.calls.includes(strong);
    const score = scoreOf(row, outcome.text, isEscalated ? [strong, ...weak] : weak);
    cascaded.push({ row, isEscalated, score, weakScore: isEscalated ? (row.models[better]?.score ?? 0) : score });
  }
  const figures = (some: readonly Cascaded[]): CascadeFigures => ({
    rows: some.length,
    accuracy: mean(some.map(({ score }) => score)),
    strong_accuracy: accuracyOf(
      some.map(({ row }) => row),
      strong,
    ),
    strong_share: mean(some.map(({ isEscalated }) => Number(isEscalated))),
    ...paired(some.map(({ row, score }) => score - (row.models[strong]?.score ?? 0))),
    ...curve(
      some.map(({ row, isEscalated, weakScore }) => ({
        weak: weakScore,
        strong: row.models[strong]?.score ?? 0,
        rank: [Number(isEscalated), difficulty(row)],
      })),
    ),
  });
  return { ...figures(cascaded), all_answered: figures(cascaded.filter(({ row }) => isAnswered(row, names))) };
}

/**
 * Runs each question through the plan, without accuracies in the catalogue, so that no model is asked alone. Also
 * yields the name of the weak model that is better on other folds.
 */
export async function* cascade(
  rows: readonly Row[],
  weak: readonly string[],
  strong: string,
): AsyncGenerator<[row: Row, outcome: Outcome, better: string]> {
  const known = new Map(weak.map((name) => [name, knownAccuracy(rows, name)]));
  for (const [index, row] of rows.entries()) {
    const accuracy = (name: string) => known.get(name)?.(index);
    const crew = [...weak, strong].map((name) => ({
      name,
      tier: name === strong ? ("strong" as const) : ("fast" as const),
      accuracy: undefined,
      recording: row.models[name],
    }));
    const outcome = await replay(crew, { prompt: row.prompt, level: "medium", shape: "text", read: () => undefined });
    const better = weak.toSorted((a, b) => (accuracy(b) ?? 0) - (accuracy(a) ?? 0))[0] ?? strong;
    yield [row, outcome, better];
  }
}
