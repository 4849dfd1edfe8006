import type { Effort, Level, Shape, Tier } from "../../contract/terms.ts";
import type { Catalogue } from "../../models/catalogue.ts";
import { type Knowledge, type Ranked, type Ranking, rank, tierFirst } from "../../models/order.ts";
import type { Model, WrittenCall } from "../../models/port/model.ts";
import { abilityOf, type Kind } from "../difficulty/difficulty.ts";
import { exactAnswer } from "../fuse/exact-answer.ts";
import { isDominated } from "../fuse/peers.ts";
import { cascade } from "./cascade.ts";
import { type Comparison, compareAnswers, compareObjects, type Share } from "./compare.ts";
import { compareCalls } from "./compare-calls.ts";
import { withStep } from "./composite.ts";
import { asPanelMember, asSample, drafters, eligible, inTurn, roleIn, voteConstants, voters } from "./crew.ts";
import { depthOf, withDepth } from "./depth.ts";
import type { Draft, PanelMember } from "./draft.ts";
import { hedged } from "./hedge.ts";
import { judge } from "./judge.ts";
import { above, choosePair } from "./pair.ts";
import { panel } from "./panel.ts";
import type { Steps } from "./step.ts";
import { synthesis } from "./synthesis.ts";

/** What determines the plan of an answer. */
export interface PlanCriteria {
  level: Level;
  /** What the caller asked for. Default: the level. */
  effort?: Effort;
  kind: Kind;
  shape: Shape;
  /** How often models are expected to fail on the prompt, 0 to 1; undefined counts as 1. */
  difficulty?: number | undefined;
  /** Whether the answer is streamed. */
  streamed: boolean;
  /** Whether the answer continues an existing text, which then one model alone writes. */
  continues: boolean;
  /** Whether the request has images. */
  hasImages: boolean;
  /** Tokens of the request by the service's count. Models with a context window that is too small are not called. */
  inputTokens?: number | undefined;
  /** Time for the whole answer, in milliseconds. */
  deadlineMs: number;
  /** Identifier of the generation: any unique text. It determines the order of drafts. */
  generation: string;
  /** What has been learned of the models. */
  knowledge?: Knowledge | undefined;
  /** The valid JSON object in a text, as JSON text, or undefined; for the two JSON shapes. */
  read: (text: string) => string | undefined;
  /** Canonical form of the calls of a draft; set if the answer may ask for tools. See `canonicalCalls`. */
  readCalls?: ((calls: readonly WrittenCall[]) => string | undefined) | undefined;
}

/** Kinds of prompts with one right answer, on which drafts can be compared. */
const ONE_ANSWER: ReadonlySet<Kind> = new Set(["closed", "maths", "output", "extraction"]);
/**
 * Difficulty from which level `medium` uses a strong model: the median of the recorded prompts that `auto` takes to
 * `medium` (docs/decisions/difficulty.md).
 */
const STRONG_FROM = 0.32;
/**
 * Kinds for which one model that thinks is better than a vote of models that do not: on CRUXEval .945 against .879, on
 * GSM8K .960 against .970 (docs/decisions/plans.md).
 */
const THINKING: ReadonlySet<Kind> = new Set<Kind>(["output"]);
/**
 * Shares of the time for the answer: the timeout of a panel, the latest start of the final answer, the timeout of an
 * analysis.
 */
const TIME = { panel: 0.6, firstText: 0.9, analysis: 0.2 };

/** What the parts of a plan need. */
interface Context extends Ranking {
  criteria: PlanCriteria;
  steps: Steps;
}

/**
 * Chooses the plan for an answer by level, kind and available models. The plan is itself a model; it reports its
 * steps as pieces. Every choice of a model follows one order, by accuracy for the ability that the kind needs (`rank`).
 *
 * - effort auto, one right answer: two fast models at every level; if they disagree, a more accurate model answers.
 *   Whether two models agree predicts a mistake better than the wording of the prompt does (docs/decisions/plans.md).
 * - low: one fast model.
 * - medium, closed or JSON: the same two fast models. Other prompts: one model, by difficulty.
 * - with tools: at low one fast model; at medium two fast ones, and a more accurate one if they disagree; at high a
 *   vote without a judge, or like medium where one model alone would vote. So a step of an agent waits for one round of
 *   drafts and one more model at most.
 * - high, closed or JSON: up to five models of similar accuracy vote; without a majority the judge decides (of JSON,
 *   only the fields without a majority). Other prompts: up to three drafts, an analysis and a synthesis.
 *
 * At high, a model that thinks at length answers a question about the output of a program alone.
 *
 * With models of one vendor only, or one model far above the others, three samples of the strongest model replace the
 * vote, because weaker models that agree are more often wrong than that model (docs/decisions/fusion.md).
 */
export function choosePlan(
  models: Pick<Catalogue, "members" | "offline">,
  criteria: PlanCriteria,
  steps: Steps,
): Model {
  const { level, kind, shape, effort = level } = criteria;
  const ranking = rank(eligible(models.members, criteria), abilityOf(kind), criteria.knowledge);
  const context = { ...ranking, criteria, steps };
  const ranked = ranking.members;
  const one = (tier: Tier) => single(context, tier === "fast" ? tierFirst(ranked, tier) : ranked);
  if (models.offline || criteria.continues) return one(tierOf(criteria));

  if (criteria.readCalls) return toolPlan(context);
  const asksForOne = ONE_ANSWER.has(kind);
  const isClosed = shape !== "text" || asksForOne;
  if ((effort === "auto" && asksForOne) || (level === "medium" && isClosed)) {
    const pair = choosePair(ranked, criteria);
    if (pair) return "alone" in pair ? alone(context, pair.alone, pair.detail) : pairPlan(context, pair.drafters);
  }
  if (level === "high") {
    const thinker = THINKING.has(kind) ? ranked.find(({ thinks }) => thinks) : undefined;
    if (!thinker || isDominated([thinker], ranked)) return highPlan(context, isClosed);
    return alone(context, thinker, "one model that thinks at length answers: for this kind it is better than a vote");
  }
  return one(level === "medium" && isClosed ? "strong" : tierOf(criteria));
}

/** The plan for an answer that may ask for tools. */
function toolPlan(context: Context): Model {
  const { members, criteria, steps } = context;
  const { level, kind, streamed } = criteria;
  if (level === "low") return single(context, tierFirst(members, "fast"));
  const pair = choosePair(members, criteria);
  const voting = level === "high" ? voters(members, voteConstants(members, kind)) : [];
  // Two fast models that agree are more often right than samples of one strong model (docs/decisions/tools.md).
  const isVote = new Set(voting.map(({ model }) => model)).size > 1 || !pair || "alone" in pair;
  if (level === "high" && isVote) {
    const strongest = withDepth(inTurn(members), depthOf("escalate", level, "strong"));
    const detail = (by: string) => `a ${by} model answers, because no draft could be used`;
    const options = { kind: "escalate", role: "strong", streamed, detail, roleOf: roleIn(members) };
    return panelThen(context, () => withStep(strongest, options, steps), voting, comparison("majority", context));
  }
  if (!pair) return single(context, members);
  return "alone" in pair ? alone(context, pair.alone, pair.detail) : pairPlan(context, pair.drafters);
}

/** One model answers; the next of `order` replaces it if it fails. */
function single({ members, reason, criteria, steps }: Context, order: readonly Ranked[], detail = reason): Model {
  const { level, streamed } = criteria;
  const role = order[0]?.tier ?? "strong";
  return withStep(
    withDepth(streamed ? hedged(inTurn(order), order, steps) : inTurn(order), depthOf("answer", level, role)),
    { kind: "answer", role, streamed, detail, roleOf: roleIn(members) },
    steps,
  );
}

function alone(context: Context, best: Ranked, detail: string): Model {
  const order = [best, ...context.members.filter((member) => member !== best)];
  return single(context, order, explained(detail, context.reason));
}

/** Two models draft. If they disagree, `escalation` answers. */
function pairPlan(context: Context, pair: readonly Ranked[]): Model {
  const { level } = context.criteria;
  const asked = pair.map((one) => asPanelMember(one, level));
  return panelThen(context, (drafts) => escalation(context, pair, drafts), asked, comparison("all", context));
}

/**
 * Answers after a pair that disagrees or has failed: a model that is more accurate than those that drafted; without
 * one, a third draft and a vote. No model that has drafted is asked again while another is left.
 */
function escalation(context: Context, pair: readonly Ranked[], drafts: readonly Draft[]): Model {
  const { members, criteria, steps } = context;
  const { level, streamed, deadlineMs } = criteria;
  const drafted = members.filter(({ model }) => drafts.some(({ member }) => member.model === model));
  const left = members.filter((member) => !drafted.includes(member));
  const order = [...left.filter((member) => !pair.includes(member)), ...left.filter((member) => pair.includes(member))];
  const better = above(drafted, order);
  if (drafts.length === 0 || better.length > 0) {
    const first = drafts.length === 0 ? order : [...new Set([...better, ...order])];
    const role = first[0]?.tier ?? "strong";
    const model = streamed ? hedged(inTurn(first), first, steps) : inTurn(first);
    // After a failover, the one that answers can be of the other tier.
    const which = (by: string) => (by === "fast" && role === "fast" ? "more accurate" : by);
    const detail = (by: string) => `a ${which(by)} model answers, because the drafts do not decide`;
    const options = { kind: "escalate", role, streamed, detail, roleOf: roleIn(members) };
    return withStep(withDepth(model, depthOf("escalate", level, role)), options, steps);
  }
  const [next] = order;
  const sampled = drafted[0] ?? next;
  const third = next ? { ...asPanelMember(next, level), model: inTurn(order) } : sampled && asSample(sampled, level);
  return panel({
    members: third ? [third] : [],
    given: drafts,
    compare: comparison("majority", context),
    deadlineMs: deadlineMs * (TIME.firstText - TIME.panel),
    steps,
  });
}

function highPlan(context: Context, isClosed: boolean): Model {
  const { members, reason, criteria, steps } = context;
  const { kind, level, streamed, deadlineMs, generation } = criteria;
  const panelMembers = isClosed ? voters(members, voteConstants(members, kind)) : drafters(members);
  const compare = isClosed ? comparison("majority", context) : undefined;

  const conclude = (drafts: readonly Draft[]) => {
    // Models that failed to draft or were too late come last in the failover order.
    const drafted = new Set(drafts.map(({ member }) => member.model));
    const failed = new Set(panelMembers.flatMap(({ model }) => (drafted.has(model) ? [] : [model])));
    const order = members.toSorted((a, b) => Number(failed.has(a.model)) - Number(failed.has(b.model)));
    const strongest = inTurn(order);
    const task = drafts.length === 0 ? "escalate" : compare ? "judge" : "write";
    const model = withDepth(streamed ? hedged(strongest, order, steps) : strongest, depthOf(task, level, "strong"));
    const roleOf = roleIn(members);
    if (drafts.length === 0) {
      const detail = (by: string) => explained(`a ${by} model answers, because no draft came`, reason);
      return withStep(model, { kind: "escalate", role: "strong", streamed, detail, roleOf }, steps);
    }
    const options = { model, drafts, generation, streamed, roleOf, steps };
    if (compare) return judge({ ...options, join: compare.join });
    return synthesis({
      ...options,
      reason,
      analyst: withDepth(strongest, depthOf("analysis", level, "strong")),
      analysisMs: deadlineMs * TIME.analysis,
    });
  };
  return panelThen(context, conclude, panelMembers, compare);
}

/** A panel, and the model that `next` gives when the panel does not settle the answer. */
function panelThen(
  { reason, criteria: { deadlineMs }, steps }: Context,
  next: (drafts: readonly Draft[]) => Model,
  members: readonly PanelMember[],
  compare: Comparison | undefined,
): Model {
  return cascade({
    first: panel({ members, ...(compare ? { compare } : {}), reason, deadlineMs: deadlineMs * TIME.panel, steps }),
    next,
    firstTextMs: deadlineMs * TIME.firstText,
    steps,
  });
}

function comparison(share: Share, { members, criteria }: Context): Comparison {
  const { kind, shape, read, readCalls } = criteria;
  if (readCalls) return compareCalls(share, (_, calls) => readCalls(calls), voteConstants(members, kind));
  if (shape !== "text") return compareObjects(share, read);
  return compareAnswers(share, kind === "output" ? exactAnswer : undefined, voteConstants(members, kind));
}

function explained(detail: string, reason: string | undefined): string {
  return reason === undefined ? detail : `${detail}; ${reason}`;
}

function tierOf({ level, difficulty = 1 }: PlanCriteria): Tier {
  if (level === "medium") return difficulty < STRONG_FROM ? "fast" : "strong";
  return level === "low" ? "fast" : "strong";
}
