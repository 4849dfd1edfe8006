import type { Tier } from "../../contract/terms.ts";
import { logOdds, strengthOf } from "../../models/order.ts";
import { EPSILON, support, type VoteConstants, voteWeight } from "./vote.ts";

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
/** Strong models of unknown accuracy whose vote needs no fast ones. */
const ENOUGH = 3;

/**
 * Selects the models that may vote: those within 1.5 of the best in log-odds of accuracy. Where an accuracy is unknown,
 * the one that is assumed for the tier counts; fast models then vote only beside fewer than three strong ones. A model
 * that dominates all others and that they cannot outvote together is the only voter.
 * @returns voters in the given order; at least one of at least one member
 */
export function peers<T extends Rated>(members: readonly T[], constants: VoteConstants = {}): T[] {
  const best = Math.max(...members.map((one) => logOdds(strengthOf(one))));
  const near = members.filter((one) => best - logOdds(strengthOf(one)) <= VOTER_GAP + EPSILON);
  const isOnlyTier = (one: T, tier: Tier) => one.accuracy === undefined && one.tier === tier;
  const isEnough = near.filter((one) => isOnlyTier(one, "strong")).length >= ENOUGH;
  const voters = near.filter((one) => !isEnough || !isOnlyTier(one, "fast"));
  const dominant = voters.find((one) => {
    const others = voters.filter((other) => other !== one).map(strengthOf);
    const together = support(
      others.map((other) => voteWeight(other)),
      constants,
    );
    const lead = logOdds(strengthOf(one)) - logOdds(Math.max(0, ...others));
    return lead > DOMINANCE + EPSILON && voteWeight(strengthOf(one)) > together + EPSILON;
  });
  return dominant ? [dominant] : voters;
}

/**
 * Whether one of `members` is so much more accurate than the best of `some` that their agreement must not replace it.
 * False where accuracies are unknown.
 */
export function isDominated(some: readonly Rated[], members: readonly Rated[], lead = DOMINANCE): boolean {
  const accuracies = some.flatMap(({ accuracy }) => accuracy ?? []);
  if (accuracies.length === 0 || accuracies.length < some.length) return false;
  const best = logOdds(Math.max(...accuracies));
  return members.some(({ accuracy }) => accuracy !== undefined && logOdds(accuracy) - best > lead + EPSILON);
}
