import { cascade } from "./cascade.ts";
import type { Choice, Row } from "./recording.ts";
import type { Outcome } from "./replay.ts";
import { mean, pairOf } from "./score.ts";
import { ballots } from "./vote.ts";

/** Estimated cost in USD of 1,000 questions. */
export interface CostPart {
  rows: number;
  /** Of the first weak model alone, and of the strong model alone. */
  weak?: number;
  strong?: number;
  /** Of the cascade and of the panel, including every call of their plans. */
  cascade?: number;
  panel?: number;
}

/**
 * Computes the cost of answering from the recorded cost of each call. Uses the questions for which the costs of all
 * models are recorded; omits roles with a model without recorded costs. A call of the judge counts as a call of the
 * strongest member, although it also reads the drafts.
 * @returns undefined if no costs are recorded
 */
export async function costPart(all: readonly Row[], choice: Choice): Promise<CostPart | undefined> {
  const priced = (names: readonly string[]) =>
    names.every((name) => all.some((row) => costOf(row, name) !== undefined)) ? names : [];
  const pair = priced(pairOf(choice));
  const [strong] = priced(choice.strong === undefined ? [] : [choice.strong]);
  const panel = priced([...new Set(choice.panel)]);
  const names = [...pair, ...(strong === undefined ? [] : [strong]), ...panel];
  const rows = all.filter((row) => names.length > 0 && names.every((name) => costOf(row, name) !== undefined));
  if (rows.length === 0) return undefined;
  const per1000 = (costs: readonly number[]) => 1_000 * mean(costs);
  const alone = (name: string) => per1000(rows.map((row) => costOf(row, name) ?? 0));
  const [first] = pair;
  return {
    rows: rows.length,
    ...(first !== undefined && { weak: alone(first) }),
    ...(strong !== undefined && { strong: alone(strong) }),
    ...(strong !== undefined && pair.length > 1 && { cascade: per1000(await spent(cascade(rows, pair, strong))) }),
    ...(panel.length > 1 && { panel: per1000(await spent(ballots(rows, panel))) }),
  };
}

/** Cost of each question, summed over its calls. */
async function spent(answered: AsyncIterable<[row: Row, outcome: Outcome, ...rest: unknown[]]>): Promise<number[]> {
  const costs: number[] = [];
  for await (const [row, { calls }] of answered) {
    costs.push(calls.reduce((all, name) => all + (costOf(row, name) ?? 0), 0));
  }
  return costs;
}

function costOf({ models }: Row, name: string): number | undefined {
  const cost = models[name]?.cost_usd;
  return typeof cost === "number" && Number.isFinite(cost) ? cost : undefined;
}
