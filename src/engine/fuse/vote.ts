import { logOdds } from "../../models/order.ts";

/** The vote of one candidate. */
export interface Ballot {
  /** Canonical form of the answer; undefined: the candidate abstains. */
  answer: string | undefined;
  /** 0 or more. See `voteWeight`. */
  weight: number;
}

interface Tally {
  /** Index of the first of the heaviest ballots for the winning answer. */
  leader: number;
  /** The winner's share of the weight of all ballots that do not abstain, 0 to 1. */
  agreement: number;
  /** Whether outstanding votes cannot change the winner. Never true for a tie. */
  decided: boolean;
}

/**
 * What a further ballot for an answer adds to the heaviest one, as a share of its weight. Below 1, because models make
 * the same mistakes: their votes are not independent. Wrong results of a calculation are seldom the same, so in maths
 * further votes count more. Fitted with `OFFSET` on recorded panels (docs/decisions/fusion.md).
 */
export const FURTHER = { maths: 0.7, others: 0.3 };
/** Added to the log-odds of a model's accuracy, because models that are wrong rarely give the same wrong answer. */
const OFFSET = 0.8;
/** Smallest weight of a vote. */
const LEAST = 0.05;
/** Tolerance for sums and differences of weights such as .1 + .2. */
export const EPSILON = 1e-9;

/** Constants of a vote. */
export interface VoteConstants {
  /** What a further ballot counts, as a share of its weight, 0 to 1. Default: that of abilities other than maths. */
  further?: number;
  /** For measurements. */
  offset?: number;
}

/** Weight of a model's vote for its share of right answers, 0 to 1. */
export function voteWeight(accuracy: number, { offset = OFFSET }: VoteConstants = {}): number {
  return Math.max(LEAST, logOdds(accuracy) + offset);
}

/** The weight of votes together. */
export function weightOf(votes: ReadonlyArray<{ readonly weight: number }>): number {
  return votes.reduce((sum, { weight }) => sum + weight, 0);
}

/** Evidence for an answer: the heaviest of its ballots, and a share of the others. 0 without ballots. */
export function support(weights: readonly number[], { further = FURTHER.others }: VoteConstants = {}): number {
  const heaviest = Math.max(0, ...weights);
  return heaviest + further * (weights.reduce((sum, weight) => sum + weight, 0) - heaviest);
}

/**
 * Counts a vote: the answer with most support wins. Among answers with equal support the one with the heaviest ballot
 * leads, then the first.
 * @param outstanding weights of the votes to come, all of which may go to one other answer
 * @returns undefined if all abstain
 */
export function tally(
  ballots: readonly Ballot[],
  outstanding: readonly number[],
  constants: VoteConstants = {},
): Tally | undefined {
  const answers = new Map<string, { leader: number; weights: number[] }>();
  let cast = 0;
  for (const [index, { answer, weight }] of ballots.entries()) {
    if (answer === undefined) continue;
    cast += weight;
    const votes = answers.get(answer);
    if (!votes) answers.set(answer, { leader: index, weights: [weight] });
    else {
      if (weight > Math.max(...votes.weights)) votes.leader = index;
      votes.weights.push(weight);
    }
  }
  const tolerance = (cast + outstanding.reduce((sum, weight) => sum + weight, 0)) * EPSILON;
  const ranked = [...answers.values()]
    .map(({ leader, weights }) => ({ leader, weights, total: support(weights, constants) }))
    .sort((a, b) =>
      Math.abs(a.total - b.total) > tolerance
        ? b.total - a.total
        : Math.max(...b.weights) - Math.max(...a.weights) || a.leader - b.leader,
    );
  const [first, ...others] = ranked;
  if (!first) return undefined;
  const rivals = [[], ...others.map(({ weights }) => weights)].map((own) =>
    support([...own, ...outstanding], constants),
  );
  return {
    leader: first.leader,
    agreement: cast > 0 ? Math.min(1, first.weights.reduce((sum, weight) => sum + weight, 0) / cast) : 0,
    decided: first.total - Math.max(...rivals) > tolerance,
  };
}
