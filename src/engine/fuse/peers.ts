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
