import { callPrice, isOnline, type Ranked, strengthOf, varied } from "../../models/order.ts";
import type { Kind } from "../difficulty/difficulty.ts";
import { isDominated } from "../fuse/peers.ts";
import { EPSILON } from "../fuse/vote.ts";

/** Two models that draft, or one that answers alone because that is better or cheaper. */
export type Pair = { drafters: [Ranked, Ranked] } | { alone: Ranked; detail: string };

/**
 * Two pairs of three that are not both right have different answers: .67, .68 and .63 of them on MMLU-Pro, GSM8K and
 * CRUXEval (docs/decisions/plans.md).
 */
const DIFFER = 2 / 3;
/**
 * Lead in log-odds of accuracy from which a model is asked alone, because a cascade to it loses accuracy. In maths
 * weaker models seldom agree on a wrong answer (docs/decisions/fusion.md).
 */
const LEAD = { maths: 0.8, others: 0.4 };

/**
 * Selects two fast models, of different vendors unless that costs accuracy. One model is asked alone if it dominates
 * the pair, or if it is at least as accurate and the pair with its escalations would cost more.
 * @returns undefined if all fast models are of one vendor
 */
export function choosePair(
  ranked: readonly Ranked[],
  { kind, inputTokens }: { kind: Kind; inputTokens?: number | undefined },
): Pair | undefined {
  const fast = ranked.filter((member) => member.tier === "fast" && isOnline(member));
  const [one, two] = varied(fast, 2);
  if (!one || !two || fast.every(({ vendor }) => vendor === one.vendor)) return undefined;
  const [best] = ranked;
  const lead = kind === "maths" ? LEAD.maths : LEAD.others;
  const others = [one, two].filter((each) => each !== best);
  if (best && isDominated(others, [best], lead))
    return { alone: best, detail: "one model answers, because it is far more accurate than the others" };
  const [next] = above([one, two], ranked);
  const [first, second, third] = [one, two, next].map((each) => each && callPrice(each, inputTokens));
  const isDearer =
    first !== undefined &&
    second !== undefined &&
    third !== undefined &&
    next &&
    first + second + disagreement(one, two) * third > third + EPSILON;
  if (isDearer) return { alone: next, detail: "one model answers, because two drafts and it would cost more" };
  return { drafters: [one, two] };
}

/** The members that are more accurate than all of `some`, best first. */
export function above(some: readonly Ranked[], ranked: readonly Ranked[]): Ranked[] {
  const best = Math.max(...some.map(strengthOf));
  return ranked.filter((member) => strengthOf(member) > best + EPSILON);
}

/** Expected share of questions on which two models disagree. */
function disagreement(one: Ranked, two: Ranked): number {
  return DIFFER * (1 - strengthOf(one) * strengthOf(two));
}
