import type { Tier } from "../../terms.ts";

/**
 * Gap in accuracy from which a model is not outvoted by weaker ones. On recorded answers to MMLU-Pro a vote of three peers is worth 3 points; with a
 * model that is 12 points better among them it loses one.
 */
const PEER_GAP = 0.08;
/** So that .72 and .64 are 8 points apart, whatever their binary fractions say. */
const EPSILON = 1e-9;

/**
 * Who may vote. Nobody who is clearly weaker than another: by known accuracy (share of right answers, 0 to 1) more than 8 points, by tier where either
 * accuracy is unknown.
 * @returns `voters`, in the given order. Where one model stands above all others it is `dominant`, and `voters` are the peers among the others: they may
 *   settle what they agree on, and it has the last word.
 */
export function peers<T extends { accuracy?: number | undefined; tier: Tier }>(
  members: readonly T[],
): { voters: T[]; dominant?: T } {
  const best = unsurpassed(members);
  const [dominant] = best;
  if (best.length !== 1 || members.length === 1 || dominant === undefined) return { voters: best };
  return { voters: unsurpassed(members.filter((member) => member !== dominant)), dominant };
}

function unsurpassed<T extends { accuracy?: number | undefined; tier: Tier }>(members: readonly T[]): T[] {
  return members.filter((member) => !members.some((other) => isAbove(other, member)));
}

function isAbove(
  one: { accuracy?: number | undefined; tier: Tier },
  other: { accuracy?: number | undefined; tier: Tier },
): boolean {
  if (one.accuracy !== undefined && other.accuracy !== undefined) {
    return one.accuracy - other.accuracy > PEER_GAP + EPSILON;
  }
  return one.tier === "strong" && other.tier === "fast";
}
