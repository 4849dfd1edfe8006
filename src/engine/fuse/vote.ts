/** The vote of one candidate. */
export interface Ballot {
  /** Canonical form of the answer; undefined: the candidate abstains. */
  answer: string | undefined;
  /** 0 or more. */
  weight: number;
}

interface Tally {
  /** Index of the first ballot for the winning answer. */
  leader: number;
  /** The winner's share of the weight of all ballots that do not abstain, 0 to 1. */
  agreement: number;
  /** Whether outstanding votes cannot change the winner. Never true for a tie. */
  decided: boolean;
}

/** Relative tolerance for sums of weights such as .1 + .2. */
const EPSILON = 1e-9;

/**
 * Counts a weighted plurality vote. Among answers with equal weight the one with the heaviest ballot leads, then the
 * first.
 * @param outstandingWeight weight of the votes to come, all of which may go to the runner-up
 * @returns undefined if all abstain
 */
export function tally(ballots: readonly Ballot[], outstandingWeight: number): Tally | undefined {
  const answers = new Map<string, { leader: number; weight: number; heaviest: number }>();
  let cast = 0;
  for (const [index, { answer, weight }] of ballots.entries()) {
    if (answer === undefined) continue;
    cast += weight;
    const votes = answers.get(answer);
    if (!votes) answers.set(answer, { leader: index, weight, heaviest: weight });
    else {
      votes.weight += weight;
      votes.heaviest = Math.max(votes.heaviest, weight);
    }
  }
  const tolerance = (cast + outstandingWeight) * EPSILON;
  const [first, second] = [...answers.values()].sort((a, b) =>
    Math.abs(a.weight - b.weight) > tolerance ? b.weight - a.weight : b.heaviest - a.heaviest || a.leader - b.leader,
  );
  if (!first) return undefined;
  return {
    leader: first.leader,
    agreement: cast > 0 ? Math.min(1, first.weight / cast) : 0,
    decided: first.weight - (second?.weight ?? 0) > outstandingWeight + tolerance,
  };
}
