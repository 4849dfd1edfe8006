import type { LanguageModelV4 } from "@ai-sdk/provider";
import { type Catalogue, inOrder, type Member } from "../../models/catalogue.ts";
import { failover } from "../../models/failover.ts";
import type { Level, Shape, Tier } from "../../terms.ts";
import type { Kind } from "../difficulty/difficulty.ts";
import { peers } from "../fuse/peers.ts";
import { cascade } from "./cascade.ts";
import { type Compare, compareAnswers, compareObjects } from "./compare.ts";
import { told } from "./composite.ts";
import { type Draft, type PanelMember, strengthOf } from "./draft.ts";
import { hedge } from "./hedge.ts";
import { panel } from "./panel.ts";
import type { Steps } from "./step.ts";
import { judge, writer } from "./synthesis.ts";

/** What a plan is chosen by. */
export interface Asked {
  level: Level;
  kind: Kind;
  shape: Shape;
  /** How likely the strong tier is to do better than the fast one, 0 to 1; undefined counts as likely. */
  difficulty?: number | undefined;
  /** The caller's own. */
  temperature: number | undefined;
  /** Whether pieces are wanted as they come. */
  streamed: boolean;
  /** Whether the answer goes on from a text that is there: that has one voice. */
  continues: boolean;
  /** Whether there are images to be seen. */
  hasImages: boolean;
  /** Tokens of the request, as the service counts them. */
  inputTokens?: number | undefined;
  /** Time for the whole answer, in milliseconds. */
  deadlineMs: number;
  /** Identifier of the generation; any text that differs from others. */
  generation: string;
  /** The valid JSON object in a text, as JSON text, or undefined; for the two JSON shapes. */
  read: (text: string) => string | undefined;
}

/** Questions with one right answer, on which models can be compared. */
const CLOSED: ReadonlySet<Kind> = new Set<Kind>(["closed", "maths", "extraction"]);
/**
 * Difficulty from which one model at level medium is a strong one: the harder half of the recorded prompts that `auto` takes to medium, those between
 * .165 and .212 (docs/decisions/difficulty.md).
 */
const STRONG_FROM = 0.18;
/** Most members of a vote, and most drafts for a writer. */
const MOST = { voters: 5, drafts: 3 };
/** Repeated sampling of one model: how often, and the temperature that makes samples differ. */
const SAMPLES = { count: 3, temperature: 0.7 };
/** Shares of the time for the answer: until which a panel drafts, until which the final answer must have begun, and that an analysis may take. */
const TIME = { panel: 0.6, firstText: 0.9, analysis: 0.2 };
/** Share of the context window that a request may take: tokenizers differ, and the answer needs room. */
const ROOM = 0.8;

/**
 * Chooses how a question is answered, by level, kind and the models that there are. The plan is a model itself; its steps come as raw parts.
 *
 * - low: one fast model.
 * - medium, closed or JSON: two fast models of different vendors; what both say is the answer, else a strong model gives it. Anything
 *   else: one model, by difficulty.
 * - high, closed or JSON: up to five near-peers vote; without a majority the strongest model decides, seeing the drafts;
 *   of JSON, only the fields without one. Anything else: up to three drafts, an analysis, and the strongest model writes.
 *
 * Where one vendor is all there is, or one model dominates, the strongest model is sampled three times instead of a vote: what weaker models
 * agree on is more often wrong than what the dominant one says (docs/decisions/fusion.md).
 */
export function choosePlan(
  models: Pick<Catalogue, "members" | "offline" | "tier">,
  asked: Asked,
  steps: Steps,
): LanguageModelV4 {
  const { level, shape, streamed, deadlineMs, generation } = asked;
  const members = eligible(models.members, asked);
  const one = (kind: string, role: Tier) => {
    const model = members === models.members ? models.tier(role) : failover(modelsOf(inOrder(members, role)));
    return told(streamed ? hedged(model, inOrder(members, role), steps) : model, { kind, role, streamed }, steps);
  };
  if (level === "low" || models.offline || asked.continues) return one("answer", tierOf(asked));

  const isClosed = shape !== "text" || CLOSED.has(asked.kind);
  const compare = (share: "majority" | "all") =>
    shape === "text" ? compareAnswers(share) : compareObjects(share, asked.read);
  const over = (crew: PanelMember[], how: Compare | undefined, next: (drafts: readonly Draft[]) => LanguageModelV4) =>
    cascade({
      first: panel({ members: crew, ...(how ? { compare: how } : {}), deadlineMs: deadlineMs * TIME.panel, steps }),
      next,
      firstTextMs: deadlineMs * TIME.firstText,
      steps,
    });
  if (level === "medium") {
    const pair = ofDifferentVendors(members.filter(({ tier }) => tier === "fast")).slice(0, 2);
    if (!isClosed || pair.length < 2) return one("answer", isClosed ? "strong" : tierOf(asked));
    return over(pair.map(asPanelMember), compare("all"), () => one("escalate", "strong"));
  }

  const ranked = members.toSorted((a, b) => strengthOf(b.tier, b.accuracy) - strengthOf(a.tier, a.accuracy));
  const real = ranked.filter(isModel);
  const crew = isClosed ? voters(real, asked) : drafters(real, asked);
  const how = isClosed ? compare("majority") : undefined;
  return over(crew, how, (drafts) => {
    // Whoever has just failed to draft, or was too late, is asked again only where nobody else can.
    const drafted = new Set(drafts.map(({ member }) => member.model));
    const failed = new Set(crew.flatMap(({ model }) => (drafted.has(model) ? [] : [model])));
    const order = ranked.toSorted((a, b) => Number(failed.has(a.model)) - Number(failed.has(b.model)));
    const strongest = failover(modelsOf(order));
    const model = streamed ? hedged(strongest, order, steps) : strongest;
    if (drafts.length === 0) return told(model, { kind: "escalate", role: "strong", streamed }, steps);
    const parts = { model, drafts, generation, streamed, steps };
    const analysisMs = deadlineMs * TIME.analysis;
    return how ? judge({ ...parts, join: how.join }) : writer({ ...parts, analyst: strongest, analysisMs });
  });
}

function tierOf({ level, difficulty = 1 }: Asked): Tier {
  if (level === "medium") return difficulty < STRONG_FROM ? "fast" : "strong";
  return level === "low" ? "fast" : "strong";
}

/** Those that can take the request; all, if none can. */
function eligible(members: readonly Member[], { hasImages, inputTokens = 0 }: Asked): readonly Member[] {
  const isAble = ({ images, contextTokens = Number.POSITIVE_INFINITY }: Member) =>
    (images || !hasImages) && inputTokens <= contextTokens * ROOM;
  if (members.every(isAble)) return members;
  const able = members.filter(isAble);
  return able.length > 0 ? able : members;
}

function voters(ranked: readonly Member[], asked: Asked): PanelMember[] {
  const { voters, dominant } = peers(ranked);
  // An even number ties.
  const count = voters.length > 2 ? Math.min(MOST.voters, voters.length - 1 + (voters.length % 2)) : voters.length;
  const isVaried = new Set(voters.map(({ vendor }) => vendor)).size > 1;
  if (dominant || !isVaried) return samples(ranked, asked);
  return variedFirst(voters).slice(0, count).map(asPanelMember);
}

function drafters(ranked: readonly Member[], asked: Asked): PanelMember[] {
  const varied = ofDifferentVendors(ranked).slice(0, MOST.drafts);
  return varied.length > 1 ? varied.map(asPanelMember) : samples(ranked, asked);
}

function samples([strongest]: readonly Member[], { temperature }: Asked): PanelMember[] {
  if (!strongest) return [];
  const sample = { ...asPanelMember(strongest), temperature: temperature ?? SAMPLES.temperature };
  return Array.from({ length: SAMPLES.count }, () => ({ ...sample }));
}

function asPanelMember({ tier, model, accuracy }: Member): PanelMember {
  return { role: tier, model, accuracy };
}

/** A built-in offline model only stands in for others. */
function isModel({ vendor }: Pick<Member, "vendor">): boolean {
  return vendor !== "offline";
}

/** The first member of each vendor. */
function ofDifferentVendors(members: readonly Member[]): Member[] {
  const seen = new Set<string>();
  return members.filter(({ vendor }) => isModel({ vendor }) && !seen.has(vendor) && seen.add(vendor));
}

/** The first member of each vendor, then the others. */
function variedFirst(members: readonly Member[]): Member[] {
  return [...new Set([...ofDifferentVendors(members), ...members])];
}

function modelsOf(members: readonly Member[]): LanguageModelV4[] {
  return members.map(({ model }) => model);
}

/** @param order the members behind `model`, in their order */
function hedged(model: LanguageModelV4, order: readonly Member[], steps: Steps): LanguageModelV4 {
  const [first, ...others] = order;
  const { vendor, latency } = first ?? {};
  const afterMs = others.length > 0 ? latency?.hedgeAfterMs() : undefined;
  if (!latency || afterMs === undefined) return model;
  const elsewhere = [...others.filter((other) => other.vendor !== vendor), ...others];
  const second = () => failover(modelsOf([...new Set(elsewhere)]));
  return hedge({
    first: model,
    second,
    afterMs,
    mayHedge: latency.maySpend,
    role: elsewhere[0]?.tier ?? "strong",
    steps,
  });
}
