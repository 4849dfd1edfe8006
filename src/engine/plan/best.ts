import { medoid } from "../fuse/medoid.ts";
import { type Draft, strengthOf } from "./draft.ts";

/** Drafts this many times shorter or longer than the median are odd. */
const ODD_LENGTH = 4;

/**
 * The draft that is the answer when nothing better can be made of them: of those that can be an answer at all, the ones that most others agree
 * with, of the usual length; among equals the one of the most accurate member, then the first.
 * @returns undefined without drafts
 */
export function bestDraft(drafts: readonly Draft[]): Draft | undefined {
  const valid = drafts.filter(({ form }) => form !== undefined);
  const pool = valid.length > 0 ? valid : drafts;
  const lengths = pool.map(({ text }) => text.length).sort((a, b) => a - b);
  const usual = lengths[Math.floor(lengths.length / 2)] ?? 0;
  const central = pool[medoid(pool.map((draft) => ({ json: draft.form ?? draft.text, weight: strength(draft) })))];
  const score = (draft: Draft): number => {
    const alike = pool.filter(({ form }) => form !== undefined && form === draft.form).length;
    const { length } = draft.text;
    const isOdd = length * ODD_LENGTH < usual || length > usual * ODD_LENGTH;
    // Agreement outweighs the rest: one more that agrees counts 1, being in the middle and of usual length ½ each, accuracy up to ½.
    return alike + (draft === central ? 0.5 : 0) + (isOdd ? 0 : 0.5) + strength(draft) / 2;
  };
  let best: Draft | undefined;
  for (const draft of pool) if (!best || score(draft) > score(best)) best = draft;
  return best;
}

function strength({ member }: Draft): number {
  return strengthOf(member.role, member.accuracy);
}
