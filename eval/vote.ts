import type { Choice, Row } from "./recording.ts";
import { type Outcome, type Player, replay } from "./replay.ts";
import { accuracyOf, isAnswered, knownAccuracy, mean, paired, ranOn, scoreOf } from "./score.ts";

/** Gain of a panel over its best member, in accuracy (or mean score), paired by question, with its 95 % interval. */
export interface VoteFigures {
  rows: number;
  /** Accuracy of the member that is best on these rows. */
  best: number;
  accuracy: number;
  gain: number;
  low: number;
  high: number;
}

export type VotePart = VoteFigures & { all_answered: VoteFigures };

/**
 * Measures the plan for closed questions at level high: a vote. The accuracy on other folds decides which members vote
 * and which one decides without a majority, so no scored question influences its own result. If one member dominates,
 * the plan calls it alone.
 * @returns undefined for fewer than two members, or if no question has an answer of each member
 */
export async function votePart(all: readonly Row[], choice: Choice): Promise<VotePart | undefined> {
  const panel = [...new Set(choice.panel)];
  const rows = ranOn(all, panel);
  if (panel.length < 2 || !rows.some((row) => isAnswered(row, panel))) return undefined;
  const scored: { row: Row; score: number }[] = [];
  for await (const [row, { text }] of ballots(rows, panel)) scored.push({ row, score: scoreOf(row, text, panel) });
  const figures = (some: typeof scored): VoteFigures => {
    const own = some.map(({ row }) => row);
    const best = panel.toSorted((a, b) => accuracyOf(own, b) - accuracyOf(own, a))[0] ?? "";
    return {
      rows: some.length,
      best: accuracyOf(own, best),
      accuracy: mean(some.map(({ score }) => score)),
      ...paired(some.map(({ row, score }) => score - (row.models[best]?.score ?? 0))),
    };
  };
  return { ...figures(scored), all_answered: figures(scored.filter(({ row }) => isAnswered(row, panel))) };
}

/** Runs each question through the plan of the panel. */
export async function* ballots(
  rows: readonly Row[],
  panel: readonly string[],
): AsyncGenerator<[row: Row, outcome: Outcome]> {
  const known = panel.map((name) => knownAccuracy(rows, name));
  for (const [index, row] of rows.entries()) {
    const crew = panel.map(
      (name, at): Player => ({
        name,
        tier: "strong",
        accuracy: known[at]?.(index),
        recording: row.models[name],
      }),
    );
    yield [row, await replay(crew, { prompt: row.prompt, level: "high", shape: "text", read: () => undefined })];
  }
}
