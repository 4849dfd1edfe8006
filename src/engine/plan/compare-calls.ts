import type { WrittenCall } from "../../models/port/model.ts";
import { type Ballot, tally, type VoteConstants } from "../fuse/vote.ts";
import type { Comparison, Share } from "./compare.ts";
import type { Draft } from "./draft.ts";
import { callsOf, voteArguments } from "./vote-arguments.ts";

/** Tolerance for sums of weights. */
const EPSILON = 1e-9;

/**
 * Compares drafts that may call tools, by their calls as a whole. A draft without calls votes for no call, one whose
 * calls must not leave has no vote. With `all`, every draft must have the same calls. Else most support counts, and
 * among equals the heaviest draft, so that a vote always has an answer; then each argument is voted on by itself, among
 * the drafts that call the same tools.
 * @param canonicalise gives the canonical form of a draft's calls
 */
export function compareCalls(
  share: Share,
  canonicalise: (text: string, calls: readonly WrittenCall[]) => string | undefined,
  constants: VoteConstants = {},
): Comparison {
  const count = (drafts: readonly Draft[], outstanding: readonly number[]) =>
    tally(drafts.map(ballotOf), outstanding, constants);
  return {
    canonicalise,
    settle(drafts, outstanding) {
      const all = count(drafts, outstanding);
      const chosen = all && drafts[all.leader];
      if (!chosen) return undefined;
      const verdict = { chosen, text: chosen.text, agreement: all.agreement };
      if (share === "all") {
        const agree = drafts.length > 1 && outstanding.length === 0 && all.agreement > 1 - EPSILON;
        return agree && drafts.every(({ canonical }) => canonical !== undefined) ? verdict : undefined;
      }
      if (outstanding.length > 0) return all.decided ? verdict : undefined;
      const { canonical = "" } = chosen;
      const voted = voteArguments(canonical, drafts.map(ballotOf), constants);
      if (voted === canonical) return verdict;
      const calls = callsOf(voted);
      return canonicalise("", calls) === undefined ? verdict : { ...verdict, calls };
    },
    agreement: (drafts) => count(drafts, [])?.agreement,
  };
}

function ballotOf({ canonical, member: { weight = 1 } }: Draft): Ballot {
  return { answer: canonical, weight };
}
