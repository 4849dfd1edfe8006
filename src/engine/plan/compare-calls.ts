import type { WrittenCall } from "../../models/port/model.ts";
import { tally, type VoteConstants } from "../fuse/vote.ts";
import { namesOf } from "../tools/canonical.ts";
import type { Comparison, Share } from "./compare.ts";
import type { Draft } from "./draft.ts";

/** Tolerance for sums of weights. */
const EPSILON = 1e-9;

/**
 * Compares drafts that may call tools. Which tools are called, and whether any, is decided first, then with which
 * arguments. A draft without calls votes for no call, one whose calls must not leave has no vote. With `all`, every
 * draft must have the same calls; else most support counts, and among equals the heaviest draft, so that a vote always
 * has an answer.
 * @param canonicalise gives the canonical form of a draft's calls
 */
export function compareCalls(
  share: Share,
  canonicalise: (text: string, calls: readonly WrittenCall[]) => string | undefined,
  constants: VoteConstants = {},
): Comparison {
  const count = (drafts: readonly Draft[], outstanding: readonly number[], formOf: (form: string) => string) =>
    tally(
      drafts.map(({ canonical, member: { weight = 1 } }) => ({
        answer: canonical === undefined ? undefined : formOf(canonical),
        weight,
      })),
      outstanding,
      constants,
    );
  const whole = (form: string) => form;
  return {
    canonicalise,
    settle(drafts, outstanding) {
      const all = count(drafts, outstanding, whole);
      if (!all) return undefined;
      if (share === "all") {
        const agree = drafts.length > 1 && outstanding.length === 0 && all.agreement > 1 - EPSILON;
        const isWhole = drafts.every(({ canonical }) => canonical !== undefined);
        return agree && isWhole ? verdict(drafts[all.leader], all.agreement) : undefined;
      }
      const names = count(drafts, outstanding, namesOf);
      if (!names || (outstanding.length > 0 && !(all.decided && names.decided))) return undefined;
      const winner = drafts[names.leader]?.canonical;
      const same = drafts.filter(
        ({ canonical }) => canonical !== undefined && winner !== undefined && namesOf(canonical) === namesOf(winner),
      );
      const chosen = same[count(same, [], whole)?.leader ?? 0];
      return verdict(chosen, names.agreement);
    },
    agreement: (drafts) => count(drafts, [], whole)?.agreement,
  };
}

function verdict(chosen: Draft | undefined, agreement: number) {
  return chosen && { chosen, text: chosen.text, agreement };
}
