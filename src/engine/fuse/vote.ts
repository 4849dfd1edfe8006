/** One candidate's say. */
export interface Ballot {
  /** Form of the answer; undefined abstains. */
  answer: string | undefined;
  /** 0 or more. */
  weight: number;
}

export interface Tally {
  /** Index of the first ballot for the winning answer. */
  leader: number;
  /** Share of the cast weight that the winner has, 0 to 1; who abstains casts none. 0 if no weight was cast. */
  agreement: number;
  /** Whether what is outstanding cannot change the winner. A tie is never decided. */
  decided: boolean;
}

/** Slack for sums of weights such as .1 + .2, relative to all weight. */
const EPSILON = 1e-9;

/**
 * Counts a weighted plurality vote. Of answers with the same weight, the one with the heaviest single ballot leads, then the first.
 * @param outstandingWeight Weight of those who may still vote; it might all go to the runner-up.
 * @returns undefined if nobody gave an answer.
 */
export function tally(ballots: readonly Ballot[], outstandingWeight: number): Tally | undefined {
  const parties = new Map<string, { leader: number; weight: number; heaviest: number }>();
  let cast = 0;
  for (const [index, { answer, weight }] of ballots.entries()) {
    if (answer === undefined) continue;
    cast += weight;
    const party = parties.get(answer);
    if (!party) parties.set(answer, { leader: index, weight, heaviest: weight });
    else {
      party.weight += weight;
      party.heaviest = Math.max(party.heaviest, weight);
    }
  }
  const slack = (cast + outstandingWeight) * EPSILON;
  const [first, second] = [...parties.values()].sort((a, b) =>
    Math.abs(a.weight - b.weight) > slack ? b.weight - a.weight : b.heaviest - a.heaviest || a.leader - b.leader,
  );
  if (!first) return undefined;
  return {
    leader: first.leader,
    agreement: cast > 0 ? Math.min(1, first.weight / cast) : 0,
    decided: first.weight - (second?.weight ?? 0) > outstandingWeight + slack,
  };
}
