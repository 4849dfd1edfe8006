import type { Choice, Row } from "./recording.ts";
import { type Outcome, type Player, replay } from "./replay.ts";
import { accuracyOf, isAnswered, knownAccuracy, mean, paired, ranOn, scoreOf } from "./score.ts";

/** What a panel gains over the best of its members, in accuracy (or mean score), paired by question, with a 95 % interval. */
export interface VoteFigures {
  rows: number;
  /** Accuracy of the best single member: the one that is best on these very rows. */
  best: number;
  accuracy: number;
  gain: number;
  low: number;
  high: number;
}

export type VotePart = VoteFigures & { all_answered: VoteFigures };

/**
 * The members vote: the plan for closed questions at level high. Who may vote, and who decides without a majority, follows from the accuracy on other
 * folds, so that nothing is known of a question that is scored. Where one member dominates, the plan asks it alone.
 * @returns undefined for fewer than two members, or where no question has an answer of each
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

/** Each question as the panel answered it. */
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
