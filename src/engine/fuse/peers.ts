import type { Tier } from "../../contract/terms.ts";
import { logOdds, support, voteWeight } from "./vote.ts";

/** What is known of a model. */
interface Rated {
  /** Share of right answers, 0 to 1. */
  accuracy?: number | undefined;
  tier: Tier;
}

/** Largest difference in log-odds of accuracy to the best model with which a model may vote. */
const VOTER_GAP = 1.5;
/**
 * Difference in log-odds of accuracy from which a cascade loses more than 2 points to its strong model
 * (docs/decisions/fusion.md).
 */
const DOMINANCE = 0.8;
/** Tolerance for differences such as .72 − .64 in binary. */
const EPSILON = 1e-9;

/**
 * Selects the models that may vote: those to which no other is clearly superior. Superior means 1.5 more in log-odds
 * of accuracy, or the higher tier where an accuracy is unknown. A model that dominates all others and that they cannot
 * outvote together is the only voter.
 * @returns voters in the given order; at least one of at least one member
 */
export function peers<T extends Rated>(members: readonly T[]): T[] {
  const voters = members.filter((member) => !members.some((other) => isSuperior(other, member)));
  const dominant = voters.find((one) => {
    const others = voters.filter((other) => other !== one);
    const together = support(others.map((other) => voteWeight(strengthOf(other))));
    return isDominated(others, [one]) && voteWeight(strengthOf(one)) > together + EPSILON;
  });
  return dominant ? [dominant] : voters;
}

/**
 * Whether one of `members` is so much more accurate than the best of `some` that their agreement must not replace it.
 * False where accuracies are unknown.
 */
export function isDominated(some: readonly Rated[], members: readonly Rated[]): boolean {
  const accuracies = some.flatMap(({ accuracy }) => accuracy ?? []);
  if (accuracies.length === 0 || accuracies.length < some.length) return false;
  const best = logOdds(Math.max(...accuracies));
  return members.some(({ accuracy }) => accuracy !== undefined && logOdds(accuracy) - best > DOMINANCE + EPSILON);
}

/** Accuracy assumed for a model whose accuracy is unknown. */
const ASSUMED = { strong: 0.7, fast: 0.5 };

/** The accuracy by which models are ranked and weighted: the known one, or one assumed for the tier. */
export function strengthOf({ tier, accuracy }: Rated): number {
  return accuracy ?? ASSUMED[tier];
}

function isSuperior(one: Rated, other: Rated): boolean {
  if (one.accuracy !== undefined && other.accuracy !== undefined) {
    return logOdds(one.accuracy) - logOdds(other.accuracy) > VOTER_GAP + EPSILON;
  }
  return one.tier === "strong" && other.tier === "fast";
}
