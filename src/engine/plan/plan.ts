import type { Ability, Effort, Level, Shape, Tier } from "../../contract/terms.ts";
import { type Catalogue, inOrder, type Member } from "../../models/catalogue.ts";
import { failover } from "../../models/failover.ts";
import type { Model } from "../../models/port/model.ts";
import type { Kind } from "../difficulty/difficulty.ts";
import { exactAnswer } from "../fuse/exact-answer.ts";
import { isDominated, peers, strengthOf } from "../fuse/peers.ts";
import { voteWeight } from "../fuse/vote.ts";
import { cascade } from "./cascade.ts";
import { type Comparison, compareAnswers, compareObjects, type Share } from "./compare.ts";
import { withStep } from "./composite.ts";
import { depthOf, withDepth } from "./depth.ts";
import type { Draft, PanelMember } from "./draft.ts";
import { hedge } from "./hedge.ts";
import { judge } from "./judge.ts";
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
  /** Tokens of the request by the service's count. */
  inputTokens?: number | undefined;
  /** Time for the whole answer, in milliseconds. */
  deadlineMs: number;
  /** Identifier of the generation: any unique text. */
  generation: string;
  /** The valid JSON object in a text, as JSON text, or undefined; for the two JSON shapes. */
  read: (text: string) => string | undefined;
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
/** The ability of a model that a kind of prompt needs. */
const ABILITY: Readonly<Partial<Record<Kind, Ability>>> = {
  closed: "knowledge",
  maths: "maths",
  code: "code",
  output: "code",
  extraction: "extraction",
};
/** Most members of a vote, and most drafts for a synthesis. */
const MAX = { voters: 5, drafts: 3 };
/** Repeated sampling of one model: the number of samples, and a temperature at which they differ. */
const SAMPLES = { count: 3, temperature: 0.7 };
/**
 * Shares of the time for the answer: the timeout of a panel, the latest start of the final answer, the timeout of an
 * analysis.
 */
const TIME = { panel: 0.6, firstText: 0.9, analysis: 0.2 };
/** Largest share of the context window that a request may take: tokenizers differ, and the answer needs space. */
const CONTEXT_SHARE = 0.8;

/**
 * Chooses the plan for an answer by level, kind and available models. The plan is itself a model; it reports its
 * steps as pieces.
 *
 * - effort auto, one right answer: two fast models of different vendors at every level; if they disagree, a strong
 *   model answers. Whether two models agree predicts a mistake better than the wording of the prompt does
 *   (docs/decisions/plans.md).
 * - low: one fast model.
 * - medium, closed or JSON: two fast models of different vendors; if they disagree, a strong model answers. Other
 *   prompts: one model, by difficulty.
 * - high, closed or JSON: up to five models of similar accuracy vote; without a majority the judge decides (of JSON,
 *   only the fields without a majority). Other prompts: up to three drafts, an analysis and a synthesis.
 *
 * At high, a model that thinks at length answers a question about the output of a program alone.
 *
 * With models of one vendor only, or one model far above the others, three samples of the strongest model replace the
 * vote, because weaker models that agree are more often wrong than that model (docs/decisions/fusion.md).
 */
export function choosePlan(
  models: Pick<Catalogue, "members" | "offline" | "tier">,
  criteria: PlanCriteria,
  steps: Steps,
): Model {
  const { level, kind, shape, streamed, effort = level } = criteria;
  const able = eligible(models.members, criteria);
  const rate = () => able.map((member) => rated(member, kind));
  const single = (kind: "answer" | "escalate", role: Tier, detail?: string, chosen?: AnyMember[]) => {
    const order = () => chosen ?? inOrder<AnyMember>(able, role);
    const model = able === models.members && !chosen ? models.tier(role) : failover(modelsOf(order()));
    return withStep(
      withDepth(streamed ? hedged(model, order(), steps) : model, depthOf(kind, level, role)),
      { kind, role, streamed, detail, roleOf: roleIn(able) },
      steps,
    );
  };
  if (models.offline || criteria.continues) return single("answer", tierOf(criteria));

  const asksForOne = ONE_ANSWER.has(kind);
  const isClosed = shape !== "text" || asksForOne;
  if ((effort === "auto" && asksForOne) || (level === "medium" && isClosed)) {
    const members = rate();
    const pair = ofDifferentVendors(members.filter(({ tier }) => tier === "fast")).slice(0, 2);
    if (pair.length === 2 && (level === "low" || !isDominated(pair, members))) {
      const escalate = () => single("escalate", "strong", "a strong model answers, because the drafts do not decide");
      const asked = pair.map((one) => asPanelMember(one, level));
      return panelThen(escalate, asked, comparison("all", criteria), criteria, steps);
    }
  }
  if (level === "high") {
    const members = rate();
    const thinker = THINKING.has(kind) ? byStrength(members).find(({ thinks }) => thinks) : undefined;
    if (!thinker) return highPlan(members, isClosed, criteria, steps);
    const alone = "one model that thinks at length answers: for this kind it is better than a vote";
    return single("answer", thinker.tier, alone, [thinker, ...members.filter((one) => one !== thinker)]);
  }
  return single("answer", level === "medium" && isClosed ? "strong" : tierOf(criteria));
}

function byStrength(members: readonly RatedMember[]): RatedMember[] {
  return members.toSorted((a, b) => strengthOf(b) - strengthOf(a));
}

function highPlan(members: readonly RatedMember[], isClosed: boolean, criteria: PlanCriteria, steps: Steps): Model {
  const { level, streamed, deadlineMs, generation } = criteria;
  const ranked = byStrength(members);
  const online = ranked.filter(isOnline);
  const panelMembers = isClosed ? voters(online) : drafters(online);
  const compare = isClosed ? comparison("majority", criteria) : undefined;

  const conclude = (drafts: readonly Draft[]) => {
    // Models that failed to draft or were too late come last in the failover order.
    const drafted = new Set(drafts.map(({ member }) => member.model));
    const failed = new Set(panelMembers.flatMap(({ model }) => (drafted.has(model) ? [] : [model])));
    const order = ranked.toSorted((a, b) => Number(failed.has(a.model)) - Number(failed.has(b.model)));
    const strongest = failover(modelsOf(order));
    const task = drafts.length === 0 ? "escalate" : compare ? "judge" : "write";
    const model = withDepth(streamed ? hedged(strongest, order, steps) : strongest, depthOf(task, level, "strong"));
    const roleOf = roleIn(members);
    if (drafts.length === 0) {
      const detail = "a strong model answers, because no draft came";
      return withStep(model, { kind: "escalate", role: "strong", streamed, detail, roleOf }, steps);
    }
    const options = { model, drafts, generation, streamed, roleOf, steps };
    if (compare) return judge({ ...options, join: compare.join });
    return synthesis({
      ...options,
      analyst: withDepth(strongest, depthOf("analysis", level, "strong")),
      analysisMs: deadlineMs * TIME.analysis,
    });
  };
  return panelThen(conclude, panelMembers, compare, criteria, steps);
}

/** A panel, and the model that `next` gives when the panel does not settle the answer. */
function panelThen(
  next: (drafts: readonly Draft[]) => Model,
  members: PanelMember[],
  compare: Comparison | undefined,
  { deadlineMs }: PlanCriteria,
  steps: Steps,
): Model {
  return cascade({
    first: panel({ members, ...(compare ? { compare } : {}), deadlineMs: deadlineMs * TIME.panel, steps }),
    next,
    firstTextMs: deadlineMs * TIME.firstText,
    steps,
  });
}

function comparison(share: Share, { kind, shape, read }: PlanCriteria): Comparison {
  if (shape !== "text") return compareObjects(share, read);
  return kind === "output" ? compareAnswers(share, exactAnswer) : compareAnswers(share);
}

function tierOf({ level, difficulty = 1 }: PlanCriteria): Tier {
  if (level === "medium") return difficulty < STRONG_FROM ? "fast" : "strong";
  return level === "low" ? "fast" : "strong";
}

type AnyMember = Omit<Member, "accuracy">;
/** A member with its accuracy for one kind of prompt. */
type RatedMember = AnyMember & { accuracy?: number };

function rated({ accuracy, ...member }: Member, kind: Kind): RatedMember {
  const own = typeof accuracy === "object" ? accuracy[ABILITY[kind] ?? "prose"] : accuracy;
  return own === undefined ? member : { ...member, accuracy: own };
}

/** The members that support the request's images and length; all members if none does. */
function eligible(members: readonly Member[], { hasImages, inputTokens = 0 }: PlanCriteria): readonly Member[] {
  const isAble = ({ images, contextTokens = Number.POSITIVE_INFINITY }: Member) =>
    (images || !hasImages) && inputTokens <= contextTokens * CONTEXT_SHARE;
  if (members.every(isAble)) return members;
  const able = members.filter(isAble);
  return able.length > 0 ? able : members;
}

function voters(ranked: readonly RatedMember[]): PanelMember[] {
  const voters = peers(ranked);
  const isVaried = new Set(voters.map(({ vendor }) => vendor)).size > 1;
  if (!isVaried) return samples(ranked);
  return variedFirst(voters)
    .slice(0, MAX.voters)
    .map((one) => ({ ...asPanelMember(one, "high"), weight: voteWeight(strengthOf(one)) }));
}

function drafters(ranked: readonly RatedMember[]): PanelMember[] {
  const varied = ofDifferentVendors(ranked).slice(0, MAX.drafts);
  return varied.length > 1 ? varied.map((one) => asPanelMember(one, "high")) : samples(ranked);
}

function samples([strongest]: readonly RatedMember[]): PanelMember[] {
  if (!strongest) return [];
  const sample = { ...asPanelMember(strongest, "high"), temperature: SAMPLES.temperature };
  return Array.from({ length: SAMPLES.count }, () => ({ ...sample }));
}

function asPanelMember({ tier, model, accuracy }: RatedMember, level: Level): PanelMember {
  return { role: tier, model, accuracy, depth: depthOf("draft", level, tier) };
}

/** False for the built-in offline models, which only replace missing vendors. */
function isOnline({ vendor }: RatedMember): boolean {
  return vendor !== "offline";
}

/** The first member of each vendor. */
function ofDifferentVendors(members: readonly RatedMember[]): RatedMember[] {
  const seen = new Set<string>();
  return members.filter((member) => isOnline(member) && !seen.has(member.vendor) && seen.add(member.vendor));
}

/** The first member of each vendor, then the others. */
function variedFirst(members: readonly RatedMember[]): RatedMember[] {
  return [...new Set([...ofDifferentVendors(members), ...members])];
}

/** Gives the tier of a member by its catalogue name. */
function roleIn(members: readonly AnyMember[]): (model: string) => Tier | undefined {
  return (model) => members.find(({ name }) => name === model)?.tier;
}

function modelsOf(members: readonly AnyMember[]): Model[] {
  return members.map(({ model }) => model);
}

/**
 * Adds a hedge to a model where its first member's latency is known.
 * @param order the members behind `model`, in failover order
 */
function hedged(model: Model, order: readonly AnyMember[], steps: Steps): Model {
  const [first, ...others] = order;
  const { vendor, latency } = first ?? {};
  const afterMs = others.length > 0 ? latency?.hedgeAfterMs() : undefined;
  if (!latency || afterMs === undefined) return model;
  const ofOtherVendor = (other: AnyMember) => other.vendor !== vendor;
  const second = () => failover(modelsOf([...new Set([...others.filter(ofOtherVendor), ...others])]));
  return hedge({
    first: model,
    second,
    afterMs,
    mayHedge: latency.maySpend,
    role: (others.find(ofOtherVendor) ?? others[0])?.tier ?? "strong",
    steps,
  });
}
