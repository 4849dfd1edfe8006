import { logOdds } from "../models/order.ts";

/** How two models fared against each other in graded disagreements. Only sums. */
export interface PairCount {
  /** Names in the catalogue. */
  one: string;
  other: string;
  /** Graded disagreements in which `one` was right and `other` was not. */
  wins: number;
  /** Those in which `other` was right and `one` was not. */
  losses: number;
}

/** A model with the accuracy that is assumed before anything is learned, 0 to 1. */
export interface Prior {
  name: string;
  accuracy: number;
}

/** Wins and losses that are added for each model, against one as accurate as the prior says. */
const PRIOR = 1;
/** Smallest z of the paired wins and losses (McNemar) for which two models change their order. */
const GUARD = 2;
/** Rounds of coordinate-wise Newton steps; ten models converge in fewer. */
const ROUNDS = 60;

/**
 * Fits the accuracies of models for one ability to their wins and losses. In a Rasch model, the log-odds with which one
 * of two models is the one that is right is the difference of their abilities, however difficult the question is
 * (Bradley-Terry). The accuracies are shrunk to the priors by one win and one loss. Two models of different priors
 * change their order only if their own wins and losses say so with z of 2 or more; else they get the same accuracy,
 * so that the prior order holds.
 * @param priors the models, best first
 * @param pairs each pair at most once; pairs with other models are ignored
 * @returns accuracies by name, 0 to 1
 */
export function fitAccuracies(priors: readonly Prior[], pairs: readonly PairCount[]): Map<string, number> {
  const wins = winsOf(priors, pairs);
  const prior = priors.map(({ accuracy }) => logOdds(accuracy));
  const fitted = bradleyTerry(prior, wins);
  return new Map(
    guarded(fitted, wins, prior).flatMap(({ members, ability }) =>
      members.map((at) => [priors[at]?.name ?? "", 1 / (1 + Math.exp(-ability))] as const),
    ),
  );
}

/** `wins[a][b]`: how often model `a` was right where `b` was not. */
function winsOf(priors: readonly Prior[], pairs: readonly PairCount[]): number[][] {
  const at = new Map(priors.map(({ name }, index) => [name, index]));
  const wins = priors.map(() => priors.map(() => 0));
  for (const { one, other, wins: won, losses } of pairs) {
    const [a, b] = [at.get(one), at.get(other)];
    const [ofA, ofB] = [wins[a ?? -1], wins[b ?? -1]];
    if (a === undefined || b === undefined || !ofA || !ofB) continue;
    ofA[b] = (ofA[b] ?? 0) + won;
    ofB[a] = (ofB[a] ?? 0) + losses;
  }
  return wins;
}

/** Abilities in log-odds with the largest posterior probability. */
function bradleyTerry(prior: readonly number[], wins: readonly number[][]): number[] {
  const abilities = [...prior];
  for (let round = 0; round < ROUNDS; round++)
    for (const [a, own] of abilities.entries()) {
      const expected = (to: number) => 1 / (1 + Math.exp(to - own));
      const anchor = expected(prior[a] ?? 0);
      let gradient = PRIOR - 2 * PRIOR * anchor;
      let curvature = 2 * PRIOR * anchor * (1 - anchor);
      for (const [b, other] of abilities.entries()) {
        const [won, lost] = [wins[a]?.[b] ?? 0, wins[b]?.[a] ?? 0];
        const p = expected(other);
        gradient += won - (won + lost) * p;
        curvature += (won + lost) * p * (1 - p);
      }
      abilities[a] = own + Math.max(-1, Math.min(1, gradient / Math.max(curvature, 1e-6)));
    }
  return abilities;
}

interface Block {
  members: number[];
  ability: number;
}

/** Sorts by ability as far as the guard allows, and pools neighbours whose order it does not allow to change. */
function guarded(abilities: readonly number[], wins: readonly number[][], prior: readonly number[]): Block[] {
  const order: Block[] = [];
  for (const [at, ability] of abilities.entries()) {
    let place = order.length;
    let block: Block = { members: [at], ability };
    for (let before = order[place - 1]; before && before.ability < block.ability; before = order[place - 1]) {
      if (isKnownBetter(before, block, prior) && z(block, before, wins) < GUARD) {
        block = pooled(before, block);
        order.splice(place - 1, 1);
      }
      place -= 1;
    }
    order.splice(place, 0, block);
  }
  return order;
}

/** Whether the prior says that a model of one block is better than one of another, and not only the order of a list. */
function isKnownBetter(one: Block, other: Block, prior: readonly number[]): boolean {
  const of = ({ members }: Block) => members.map((at) => prior[at] ?? 0);
  return Math.max(...of(one)) > Math.min(...of(other));
}

function pooled(one: Block, other: Block): Block {
  const [n, m] = [one.members.length, other.members.length];
  const ability = (one.ability * n + other.ability * m) / (n + m);
  return { members: [...one.members, ...other.members], ability };
}

/** The z of the paired wins of one block over another. */
function z(one: Block, other: Block, wins: readonly number[][]): number {
  const count = (from: Block, to: Block) =>
    from.members.reduce((sum, a) => sum + to.members.reduce((all, b) => all + (wins[a]?.[b] ?? 0), 0), 0);
  const [won, lost] = [count(one, other), count(other, one)];
  return won + lost === 0 ? 0 : (won - lost) / Math.sqrt(won + lost);
}
