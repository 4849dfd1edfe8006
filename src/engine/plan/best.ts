import { strengthOf } from "../../models/order.ts";
import { medoid } from "../fuse/medoid.ts";
import type { Draft } from "./draft.ts";

/** A draft is an outlier when it is this many times shorter or longer than the median. */
const OUTLIER_RATIO = 4;

/**
 * The draft that becomes the answer when the drafts cannot be combined. Among the drafts that can be an answer it
 * prefers the one with which most others agree and which is no outlier in length; then the most accurate member's;
 * then the first.
 * @returns undefined without drafts
 */
export function bestDraft(drafts: readonly Draft[]): Draft | undefined {
  const valid = drafts.filter(({ canonical }) => canonical !== undefined);
  const pool = valid.length > 0 ? valid : drafts;
  const lengths = pool.map(({ text }) => text.length).sort((a, b) => a - b);
  const median = lengths[Math.floor(lengths.length / 2)] ?? 0;
  const candidates = pool.map((draft) => ({ json: draft.canonical ?? draft.text, weight: strength(draft) }));
  const central = pool[medoid(candidates)];
  const score = (draft: Draft): number => {
    const agreeing = pool.filter(({ canonical }) => canonical !== undefined && canonical === draft.canonical).length;
    const { length } = draft.text;
    const isOutlier = length * OUTLIER_RATIO < median || length > median * OUTLIER_RATIO;
    // Agreement counts most: 1 for each draft that agrees, ½ each for being central and of usual length, up to ½ for
    // accuracy.
    return agreeing + (draft === central ? 0.5 : 0) + (isOutlier ? 0 : 0.5) + strength(draft) / 2;
  };
  let best: Draft | undefined;
  for (const draft of pool) if (!best || score(draft) > score(best)) best = draft;
  return best;
}

function strength({ member }: Draft): number {
  return strengthOf({ tier: member.role, accuracy: member.accuracy });
}
