import type { Tier } from "../../terms.ts";

/** Difference in accuracy above which the stronger model must not be outvoted (docs/decisions/fusion.md). */
const PEER_GAP = 0.08;
/** Tolerance for differences such as .72 − .64 in binary. */
const EPSILON = 1e-9;

/**
 * Selects the models that may vote: those to which no other is clearly superior. Superior means an accuracy (share of
 * correct answers, 0 to 1) more than 8 points higher, or the higher tier where an accuracy is unknown.
 * @returns `voters` in the given order. If one model is superior to all others, it is `dominant`, and `voters` are
 *   the peers among the others.
 */
export function peers<T extends { accuracy?: number | undefined; tier: Tier }>(
  members: readonly T[],
): { voters: T[]; dominant?: T } {
  const voters = unsurpassed(members);
  const [dominant] = voters;
  if (voters.length !== 1 || members.length === 1 || dominant === undefined) return { voters };
  return { voters: unsurpassed(members.filter((member) => member !== dominant)), dominant };
}

/**
 * Difference in log-odds of accuracy from which a cascade loses more than 2 points to its strong model
 * (docs/decisions/fusion.md).
 */
const DOMINANCE = 0.8;

/**
 * Whether one of `members` is so much more accurate than the better of `pair` that it must not be replaced by two that
 * agree. False where accuracies are unknown.
 */
export function isDominated(pair: readonly Rated[], members: readonly Rated[]): boolean {
  const accuracies = pair.flatMap(({ accuracy }) => accuracy ?? []);
  if (accuracies.length < pair.length) return false;
  const best = logOdds(Math.max(...accuracies));
  return members.some(({ accuracy }) => accuracy !== undefined && logOdds(accuracy) - best > DOMINANCE + EPSILON);
}

/** Natural logarithm of p / (1 − p), for accuracies from .01 to .99. */
function logOdds(accuracy: number): number {
  const p = Math.min(0.99, Math.max(0.01, accuracy));
  return Math.log(p / (1 - p));
}

interface Rated {
  accuracy?: number | undefined;
}

function unsurpassed<T extends { accuracy?: number | undefined; tier: Tier }>(members: readonly T[]): T[] {
  return members.filter((member) => !members.some((other) => isSuperior(other, member)));
}

function isSuperior(
  one: { accuracy?: number | undefined; tier: Tier },
  other: { accuracy?: number | undefined; tier: Tier },
): boolean {
  if (one.accuracy !== undefined && other.accuracy !== undefined) {
    return one.accuracy - other.accuracy > PEER_GAP + EPSILON;
  }
  return one.tier === "strong" && other.tier === "fast";
}
