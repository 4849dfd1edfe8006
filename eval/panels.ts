import { kindOf } from "../src/engine/difficulty/kind.ts";
import { read } from "../src/engine/difficulty/reading.ts";
import { closedAnswer } from "../src/engine/fuse/closed-answer.ts";
import { exactAnswer } from "../src/engine/fuse/exact-answer.ts";
import { peers } from "../src/engine/fuse/peers.ts";
import { tally, type VoteConstants, voteWeight } from "../src/engine/fuse/vote.ts";
import { logOdds, strengthOf } from "../src/models/order.ts";
import { accuracies, type RecordedFile } from "./data.ts";
import type { Row } from "./recording.ts";
import { accuracyOf, mean, paired } from "./score.ts";
import { uniform } from "./shuffle.ts";

/** A recorded model with the canonical form and the score of its answer to each question. */
export interface Voter {
  name: string;
  accuracy: number;
  forms: (string | undefined)[];
  scores: number[];
  /** Its accuracy on another file, whose questions are of another kind. */
  otherAccuracy?: number;
}

/** What the engine knows of the members' accuracies. */
type Knowledge = "known" | "other" | "tier" | "nothing";

/** Gains over the best member in points, over random panels. */
export interface PanelsRow {
  panels: string;
  knows: string;
  number: number;
  mean_gain: number;
  worst_gain: number;
  /** Panels that are significantly below their best member. */
  significantly_below: number;
  /** Mean gain of a plain plurality, in which the best member's answer wins ties. */
  plain_plurality: number;
}

const PANELS = 100;
const SIZE = 5;
/** Largest difference in log-odds between near-peers. */
const NEAR = 0.8;
/** Smallest lead of a dominant member over the second best, in accuracy. */
const LEAD = 0.08;

/** The models that ran on nearly all questions of a file. */
export function votersOf(rows: readonly Row[]): Voter[] {
  const names = [...new Set(rows.flatMap(({ models }) => Object.keys(models)))];
  const usual = names.filter((name) => rows.filter(({ models }) => models[name]).length > rows.length * 0.95);
  const common = rows.filter(({ models }) => usual.every((name) => models[name]));
  const readers = common.map(({ prompt }) => (kindOf(read(prompt)) === "output" ? exactAnswer : closedAnswer));
  return usual.map((name) => ({
    name,
    accuracy: accuracyOf(common, name),
    forms: common.map(({ models }, at) => readers[at]?.(models[name]?.answer ?? "")),
    scores: common.map(({ models }) => models[name]?.score ?? 0),
  }));
}

/**
 * Measures votes of random panels of five: near-peers, any, and with a dominant member.
 * @param other the same models' accuracies on another file
 */
export function panelsPart(voters: readonly Voter[], other: ReadonlyMap<string, number>): PanelsRow[] {
  const both = voters.flatMap((voter) => {
    const otherAccuracy = other.get(voter.name);
    return otherAccuracy === undefined ? [] : [{ ...voter, otherAccuracy }];
  });
  const kinds = [
    ...panelKinds(voters),
    ...panelKinds(both).map((kind) => ({ ...kind, knowledge: ["other" as const] })),
  ];
  return kinds.flatMap(({ title, panels, knowledge }) =>
    panels.length === 0 ? [] : knowledge.map((knows) => measure(title, panels, knows)),
  );
}

/** Accuracies by name on the file of the run that shares most models with this one. */
export function otherAccuracies(file: RecordedFile, files: readonly RecordedFile[]): Map<string, number> {
  const own = accuracies(file);
  const shared = (other: RecordedFile) =>
    new Map([...accuracies(other)].flatMap(([name, { mean }]) => (own.has(name) ? [[name, mean] as const] : [])));
  const [most] = files
    .filter((other) => other !== file)
    .map(shared)
    .toSorted((a, b) => b.size - a.size);
  return most ?? new Map();
}

/** Random panels of each kind, and what the engine may know of them. */
export function panelKinds(voters: readonly Voter[]) {
  const sorted = (panel: readonly Voter[]) => panel.map(({ accuracy }) => accuracy).sort((a, b) => b - a);
  const isNear = (panel: readonly Voter[]) => {
    const odds = panel.map(({ accuracy }) => logOdds(accuracy));
    return Math.max(...odds) - Math.min(...odds) <= NEAR;
  };
  const isDominated = (panel: readonly Voter[]) => {
    const [first = 0, second = 0] = sorted(panel);
    return first - second >= LEAD;
  };
  return [
    { title: "near-peers", panels: sample(voters, isNear, 1), knowledge: ["known"] as Knowledge[] },
    { title: "any", panels: sample(voters, () => true, 2), knowledge: ["known"] as Knowledge[] },
    {
      title: "a dominant member",
      panels: sample(voters, isDominated, 3),
      knowledge: ["known", "tier", "nothing"] as Knowledge[],
    },
  ];
}

function sample(voters: readonly Voter[], accepts: (panel: readonly Voter[]) => boolean, seed: number): Voter[][] {
  const random = uniform(seed);
  const found: Voter[][] = [];
  for (let tries = 0; voters.length >= SIZE && tries < 100_000 && found.length < PANELS; tries++) {
    const panel = new Set<Voter>();
    while (panel.size < SIZE) {
      const one = voters[Math.floor(random() * voters.length)];
      if (one) panel.add(one);
    }
    if (accepts([...panel])) found.push([...panel]);
  }
  return found;
}

function measure(title: string, panels: readonly Voter[][], knows: Knowledge): PanelsRow {
  const gains = panels.map((panel) => gainOf(panel, knows));
  return {
    panels: title,
    knows: {
      known: "accuracies",
      other: "accuracies of another kind",
      tier: "tiers: the best is strong",
      nothing: "nothing",
    }[knows],
    number: panels.length,
    mean_gain: 100 * mean(gains.map(({ gain }) => gain)),
    worst_gain: 100 * Math.min(...gains.map(({ gain }) => gain)),
    significantly_below: gains.filter(({ high }) => high < 0).length,
    plain_plurality: 100 * mean(panels.map((panel) => pluralityGain(panel))),
  };
}

/**
 * The vote of a panel by the functions of the plan. Where the vote settles nothing, the judge decides; the answer of
 * the member that counts as strongest stands for the judge's.
 */
export function gainOf(panel: readonly Voter[], knows: Knowledge, constants: VoteConstants = {}) {
  const best = bestOf(panel);
  const members = panel.map((voter) => ({
    voter,
    tier: knows === "tier" && voter !== best ? ("fast" as const) : ("strong" as const),
    accuracy: { known: voter.accuracy, other: voter.otherAccuracy, tier: undefined, nothing: undefined }[knows],
  }));
  const voting = peers(members, constants).toSorted((a, b) => strengthOf(b) - strengthOf(a));
  const weights = voting.map((one) => voteWeight(strengthOf(one), constants));
  return paired(
    best.scores.map((score, at) => {
      const ballots = voting.map(({ voter }, index) => ({ answer: voter.forms[at], weight: weights[index] ?? 0 }));
      const count = tally(ballots, [], constants);
      const leader = ballots[count?.leader ?? 0]?.answer;
      const isSettled = count?.decided && ballots.filter(({ answer }) => answer === leader).length > 1;
      return (voting[isSettled ? count.leader : 0]?.voter.scores[at] ?? 0) - score;
    }),
  );
}

function pluralityGain(panel: readonly Voter[]): number {
  const best = bestOf(panel);
  const order = [best, ...panel.filter((one) => one !== best)];
  return mean(
    best.scores.map((score, at) => {
      const count = tally(
        order.map(({ forms }) => ({ answer: forms[at], weight: 1 })),
        [],
      );
      return (order[count?.leader ?? 0]?.scores[at] ?? 0) - score;
    }),
  );
}

function bestOf(panel: readonly Voter[]): Voter {
  const [best] = panel.toSorted((a, b) => b.accuracy - a.accuracy);
  if (!best) throw new RangeError("A panel needs a member.");
  return best;
}
