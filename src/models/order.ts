import type { Ability, Tier } from "../contract/terms.ts";
import type { Member } from "./catalogue.ts";

/** What has been learned of a model for an ability. */
export interface Learned {
  /** Share of questions that the model answers correctly, 0 to 1. */
  accuracy: number;
  /** Where the accuracy comes from, such as "learned from 120 graded disagreements". The trace repeats it. */
  sentence: string;
}

/**
 * What has been learned of the models up to a time. When more is learned, there is another function.
 * @param model name in the catalogue
 * @returns undefined if nothing is known
 */
export type Knowledge = (model: string, ability: Ability) => Learned | undefined;

/** A member with its accuracy for one ability. */
export type Ranked = Omit<Member, "accuracy" | "published"> & { accuracy?: number };

/** Models in the order in which every plan prefers them. */
export interface Ranking {
  /** The best one first. */
  readonly members: readonly Ranked[];
  /** What decided the order, as a clause for the trace; undefined if the tiers and the catalogue's order did. */
  reason: string | undefined;
}

/** Accuracy assumed for a model whose accuracy is unknown. */
const ASSUMED: Readonly<Record<Tier, number>> = { strong: 0.7, fast: 0.5 };
/** Input and output of a usual call, in tokens. */
const USUAL = { input: 400, output: 400 };

/** The accuracy by which models are ordered and weighted: the known one, or one assumed for the tier. */
export function strengthOf({ tier, accuracy }: { tier: Tier; accuracy?: number | undefined }): number {
  return accuracy ?? ASSUMED[tier];
}

/** Natural logarithm of p / (1 − p), for accuracies from .01 to .99. */
export function logOdds(accuracy: number): number {
  const p = Math.min(0.99, Math.max(0.01, accuracy));
  return Math.log(p / (1 - p));
}

/** Expected price of a call in USD; undefined if the catalogue has no price. */
export function callPrice({ price }: Pick<Member, "price">, inputTokens = USUAL.input): number | undefined {
  return price && (inputTokens * price.input + USUAL.output * price.output) / 1e6;
}

/**
 * Orders models by their accuracy for an ability; where it is unknown by the tier, then by price, since a dearer model
 * is usually the better one, then as in the catalogue. The accuracy is the stated one, else a learned one, else the
 * published one. Figures of different tests are not comparable: if one source knows all models, only it is used, and
 * published figures are used in no other case.
 */
export function rank(members: readonly Member[], ability: Ability, knowledge: Knowledge = NOTHING): Ranking {
  const ofKnowledge = rankings.get(knowledge) ?? new WeakMap<readonly Member[], Map<Ability, Ranking>>();
  rankings.set(knowledge, ofKnowledge);
  const known = ofKnowledge.get(members) ?? new Map<Ability, Ranking>();
  ofKnowledge.set(members, known);
  const ranking = known.get(ability) ?? ranked(members, ability, knowledge);
  known.set(ability, ranking);
  return ranking;
}

const NOTHING: Knowledge = () => undefined;
/** Rankings by what was learned and by the list of models. To rank six models takes 2 µs. */
const rankings = new WeakMap<Knowledge, WeakMap<readonly Member[], Map<Ability, Ranking>>>();

function ranked(members: readonly Member[], ability: Ability, knowledge: Knowledge): Ranking {
  const known = accuraciesOf(members.filter(isOnline), ability, knowledge);
  const rated = members.map(({ accuracy: _, published: __, ...member }): Ranked => {
    const own = known.get(member.name);
    return own === undefined ? member : { ...member, accuracy: own.accuracy };
  });
  const unknown = rated.filter((member) => isOnline(member) && member.accuracy === undefined);
  const isPriced = unknown.every(({ price }) => price);
  const isByPrice = isPriced && unknown.some((one) => unknown.some((other) => isDearer(one, other)));
  const priceOf = (member: Ranked) => (isPriced && member.accuracy === undefined ? (callPrice(member) ?? 0) : 0);
  const sentences = [...new Set([...known.values()].map(({ sentence }) => sentence))];
  const why = sentences.length > 0 ? `by accuracy, ${sentences.slice(0, 2).join(" or ")}` : isByPrice && "by price";
  return {
    members: rated.sort((a, b) => strengthOf(b) - strengthOf(a) || priceOf(b) - priceOf(a)),
    reason: members.length > 1 && why ? `the models are ordered ${why}` : undefined,
  };
}

function isDearer(one: Ranked, other: Ranked): boolean {
  return one.tier === other.tier && (callPrice(one) ?? 0) > (callPrice(other) ?? 0);
}

/** The accuracies of the first source that knows all models; else the stated ones, and learned ones of the others. */
function accuraciesOf(
  members: readonly Member[],
  ability: Ability,
  knowledge: Knowledge,
): ReadonlyMap<string, Learned> {
  const from = (source: (member: Member) => Learned | undefined) =>
    new Map(
      members.flatMap((member) => {
        const found = source(member);
        return found ? [[member.name, found] as const] : [];
      }),
    );
  const stated = from((member) => {
    const own = statedOf(member, ability);
    return own === undefined ? undefined : { accuracy: own, sentence: "stated in the catalogue" };
  });
  if (stated.size === members.length) return stated;
  const learned = from(({ name }) => knowledge(name, ability));
  if (learned.size === members.length) return learned;
  if (stated.size + learned.size > 0) return new Map([...learned, ...stated]);
  const published = from(({ published }) => {
    const own = published?.[ability];
    return own === undefined ? undefined : { accuracy: own, sentence: "published for exactly these models" };
  });
  return published.size === members.length ? published : new Map();
}

/** Whether the catalogue states the accuracy of every model for an ability, so that nothing else is used. */
export function isStated(members: readonly Member[], ability: Ability): boolean {
  return members.filter(isOnline).every((member) => statedOf(member, ability) !== undefined);
}

function statedOf({ accuracy }: Member, ability: Ability): number | undefined {
  return typeof accuracy === "object" ? accuracy[ability] : accuracy;
}

/** The members of a tier, then the others, each in the given order. */
export function tierFirst<T extends { tier: Tier }>(members: readonly T[], tier: Tier): T[] {
  return [...members.filter((member) => member.tier === tier), ...members.filter((member) => member.tier !== tier)];
}

/** Largest loss of known accuracy for which a model of another vendor is preferred. */
const POINT = 0.01;

/**
 * Selects the first members, each time one of a vendor that is not selected yet, unless that costs a point of known
 * accuracy or more.
 */
export function varied<T extends Ranked>(members: readonly T[], count: number): T[] {
  const left = [...members];
  const chosen: T[] = [];
  while (chosen.length < count) {
    const [best] = left;
    if (!best) break;
    const other = left.find(({ vendor }) => chosen.every((one) => one.vendor !== vendor));
    const loss = (best.accuracy ?? 0) - (other?.accuracy ?? best.accuracy ?? 0);
    const next = other && loss < POINT ? other : best;
    chosen.push(next);
    left.splice(left.indexOf(next), 1);
  }
  return chosen;
}

/** False for the built-in offline models, which only replace missing vendors. */
export function isOnline({ vendor }: Pick<Member, "vendor">): boolean {
  return vendor !== "offline";
}
