import type { Level, Tier } from "../../contract/terms.ts";
import type { Member } from "../../models/catalogue.ts";
import { failover } from "../../models/failover.ts";
import { isOnline, type Ranked, strengthOf, tierFirst, varied } from "../../models/order.ts";
import type { Model } from "../../models/port/model.ts";
import type { Kind } from "../difficulty/difficulty.ts";
import { peers } from "../fuse/peers.ts";
import { FURTHER, type VoteConstants, voteWeight } from "../fuse/vote.ts";
import { withStep } from "./composite.ts";
import { depthOf } from "./depth.ts";
import type { PanelMember } from "./draft.ts";
import type { Steps } from "./step.ts";

/** Most members of a vote, and most drafts for a synthesis. */
const MAX = { voters: 5, drafts: 3 };
/** Repeated sampling of one model: the number of samples, and a temperature at which they differ. */
const SAMPLES = { count: 3, temperature: 0.7 };
/** Largest share of the context window that a request may take: tokenizers differ, and the answer needs space. */
const CONTEXT_SHARE = 0.8;

/**
 * The members that support the request's images and whose context window leaves space for an answer. If no window
 * leaves space, those into whose window the request fits; if it fits into none, all. If no member supports images, they
 * do not count.
 */
export function eligible(
  members: readonly Member[],
  { hasImages, inputTokens = 0 }: { hasImages: boolean; inputTokens?: number | undefined },
): readonly Member[] {
  const fits = ({ contextTokens = Number.POSITIVE_INFINITY }: Member, share: number) =>
    inputTokens <= contextTokens * share;
  if (members.every((member) => (member.images || !hasImages) && fits(member, CONTEXT_SHARE))) return members;
  const seeing = members.filter(({ images }) => images || !hasImages);
  const able = seeing.length > 0 ? seeing : members;
  for (const share of [CONTEXT_SHARE, 1]) {
    const fitting = able.filter((member) => fits(member, share));
    if (fitting.length > 0) return fitting;
  }
  return able;
}

/** Constants of a vote on a kind of question. Without accuracies, further votes count as little as anywhere. */
export function voteConstants(ranked: readonly Ranked[], kind: Kind): VoteConstants {
  const isKnown = ranked.every((member) => member.accuracy !== undefined || !isOnline(member));
  return { further: isKnown && kind === "maths" ? FURTHER.maths : FURTHER.others };
}

/** The members of a vote; samples of the best model if all are of one vendor. */
export function voters(ranked: readonly Ranked[], constants: VoteConstants): readonly PanelMember[] {
  const known = chosen.get(ranked) ?? new Map<number | undefined, readonly PanelMember[]>();
  chosen.set(ranked, known);
  const voters = known.get(constants.further) ?? chooseVoters(ranked, constants);
  known.set(constants.further, voters);
  return voters;
}

/** Voters by ranking, which stays until the catalogue or what was learned changes. To choose of six takes 15 µs. */
const chosen = new WeakMap<readonly Ranked[], Map<number | undefined, readonly PanelMember[]>>();

function chooseVoters(ranked: readonly Ranked[], constants: VoteConstants): readonly PanelMember[] {
  const voters = peers(ranked.filter(isOnline), constants);
  if (new Set(voters.map(({ vendor }) => vendor)).size < 2) return samples(ranked);
  return varied(voters, MAX.voters).map((one) => asPanelMember(one, "high"));
}

/** The models that draft a text; samples of the best one if all are of one vendor. */
export function drafters(ranked: readonly Ranked[]): PanelMember[] {
  const online = ranked.filter(isOnline);
  const seen = new Set<string>();
  const ofVendors = online.filter(({ vendor }) => !seen.has(vendor) && seen.add(vendor));
  if (ofVendors.length < 2) return samples(ranked);
  return ofVendors.slice(0, MAX.drafts).map((one) => asPanelMember(one, "high"));
}

function samples(ranked: readonly Ranked[]): PanelMember[] {
  const strongest = ranked.find(isOnline);
  return strongest ? Array.from({ length: SAMPLES.count }, () => asSample(strongest, "high")) : [];
}

/** A member whose further drafts differ from its first one. */
export function asSample(member: Ranked, level: Level): PanelMember {
  return { ...asPanelMember(member, level), temperature: SAMPLES.temperature };
}

export function asPanelMember(member: Ranked, level: Level): PanelMember {
  const { tier, model, accuracy } = member;
  const weight = voteWeight(strengthOf(member));
  return { role: tier, model, accuracy, weight, depth: depthOf("draft", level, tier) };
}

/** Gives the tier of a member by its catalogue name. */
export function roleIn(members: readonly Ranked[]): (model: string) => Tier | undefined {
  return (model) => members.find(({ name }) => name === model)?.tier;
}

/** Asks the members of a tier in turn, then the others, for a whole completion, in a step of that kind. */
export function tierInTurn(kind: string, tier: Tier, members: readonly Ranked[], steps: Steps): Model {
  const options = { kind, role: tier, streamed: false, roleOf: roleIn(members) };
  return withStep(inTurn(tierFirst(members, tier)), options, steps);
}

/** Asks the members in turn. */
export function inTurn(members: readonly Ranked[]): Model {
  return failover(members.map(({ model }) => model));
}
