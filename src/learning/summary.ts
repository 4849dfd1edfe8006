import type { Ability } from "../contract/terms.ts";
import type { Member } from "../models/catalogue.ts";
import { logOdds } from "../models/order.ts";
import type { PairCount } from "./fit.ts";
import { currentPairs, type Duel, LEAST, learn, priorsOf } from "./knowledge.ts";

/** What is known of a model for an ability, for operators. */
export interface ModelSummary {
  name: string;
  /** The accuracy that is used, 0 to 1. */
  accuracy: number;
  /** Its 95 % interval, if the accuracies of the others are known. */
  interval: [low: number, high: number];
  wins: number;
  losses: number;
  /** Whether the guard of the fit holds its order with a model of another prior. */
  isHeld: boolean;
}

/** z of a 95 % interval. */
const Z = 1.96;
/** Accuracies that differ less are one that the guard has given to both. */
const SAME = 1e-6;

/** Sums up what is learned of an ability; the best model first. */
export function summarise(
  members: readonly Member[],
  duels: readonly Duel[],
  ability: Ability,
): { graded: number; isEnough: boolean; models: ModelSummary[] } {
  const pairs = currentPairs(members, duels, ability);
  const graded = pairs.reduce((sum, { wins, losses }) => sum + wins + losses, 0);
  const learned = learn(members, duels, ability);
  const rows = priorsOf(members, ability).map(({ name, accuracy: prior }) => ({
    name,
    prior,
    accuracy: learned.get(name)?.accuracy ?? prior,
  }));
  const accuracyOf = new Map(rows.map(({ name, accuracy }) => [name, accuracy]));
  const models = rows.map(({ name, prior, accuracy }): ModelSummary => {
    const own = pairs.flatMap((pair) => ownSide(name, pair));
    const information = own.reduce(
      (sum, { against, wins, losses }) => sum + (wins + losses) * spread(accuracy, accuracyOf.get(against) ?? accuracy),
      // The prior counts as one win and one loss.
      2 * spread(accuracy, prior),
    );
    const width = Z / Math.sqrt(information);
    return {
      name,
      accuracy,
      interval: [logistic(logOdds(accuracy) - width), logistic(logOdds(accuracy) + width)],
      wins: own.reduce((sum, { wins }) => sum + wins, 0),
      losses: own.reduce((sum, { losses }) => sum + losses, 0),
      isHeld: learned.size > 0 && rows.some((of) => of.prior !== prior && Math.abs(of.accuracy - accuracy) < SAME),
    };
  });
  return { graded, isEnough: graded >= LEAST, models: models.sort((a, b) => b.accuracy - a.accuracy) };
}

function ownSide(name: string, { one, other, wins, losses }: PairCount) {
  if (name === one) return [{ against: other, wins, losses }];
  return name === other ? [{ against: one, wins: losses, losses: wins }] : [];
}

/** Variance of one graded disagreement: what it tells about the log-odds of a model. */
function spread(accuracy: number, other: number): number {
  const p = logistic(logOdds(accuracy) - logOdds(other));
  return p * (1 - p);
}

function logistic(x: number): number {
  return 1 / (1 + Math.exp(-x));
}
