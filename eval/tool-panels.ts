import { peers } from "../src/engine/fuse/peers.ts";
import { tally, voteWeight } from "../src/engine/fuse/vote.ts";
import { voteArguments } from "../src/engine/plan/compare-calls.ts";
import { namesOf } from "../src/engine/tools/canonical.ts";
import { strengthOf } from "../src/models/order.ts";
import { mean, paired } from "./score.ts";
import { uniform } from "./shuffle.ts";
import { bestOf } from "./tool-plans.ts";
import { scoreOf, type ToolDraft, type ToolRow, vendorOf } from "./tool-rows.ts";

/** Gains of random panels over their best member in points. */
export interface ToolPanelsRow {
  panels: string;
  vote: string;
  number: number;
  mean_gain: number;
  worst_gain: number;
  /** Share of the panels with a gain. */
  gain_share: number;
  /** Mean gain on the questions where no call is right. */
  relevance_gain: number;
  /** Panels that are significantly below their best member there. */
  relevance_below: number;
  /** Mean points above a vote on whole sets, with the 95 % interval over the questions. */
  over_whole_sets: string;
}

const PANELS = 100;
/** Folds of the accuracies that weigh votes: those of the question's own fold are not used. */
const FOLDS = 5;

/** What a vote chooses: a draft, or a form that none has. */
type Choose = (drafts: readonly Ballot[]) => { form: string; draft?: ToolDraft } | undefined;

interface Ballot {
  readonly draft: ToolDraft;
  readonly weight: number;
}

const WHOLE = "whole sets";

const VOTES: Readonly<Record<string, Choose>> = {
  "tools, then arguments": byTools,
  [WHOLE]: (ballots) => plurality(ballots),
  "tools, then argument by argument": (ballots) => byArgument(ballots, byTools),
  "whole sets, then argument by argument (as served)": (ballots) => byArgument(ballots, plurality),
};

/** Measures votes of random panels of three and five models of different vendors, and of panels of one vendor. */
export function toolPanelsPart(rows: readonly ToolRow[]): ToolPanelsRow[] {
  const names = Object.keys(rows[0]?.models ?? {}).filter((name) => rows.every(({ models }) => models[name]));
  const known = knownAccuracies(rows, names);
  const kinds = [
    { title: "three of different vendors", panels: sample(names, 3, 1) },
    { title: "five of different vendors", panels: sample(names, 5, 2) },
  ];
  return kinds.flatMap(({ title, panels }) => measure(rows, title, panels, known));
}

function sample(names: readonly string[], size: number, seed: number): string[][] {
  const random = uniform(seed);
  const found: string[][] = [];
  for (let tries = 0; tries < 10_000 && found.length < PANELS; tries++) {
    const panel = Array.from({ length: size }, () => names[Math.floor(random() * names.length)] ?? "");
    if (new Set(panel.map(vendorOf)).size === size) found.push(panel);
  }
  return found;
}

type Known = (name: string, index: number) => number;

function knownAccuracies(rows: readonly ToolRow[], names: readonly string[]): Known {
  const byName = new Map(
    names.map((name) => [
      name,
      Array.from({ length: FOLDS }, (_, fold) =>
        mean(rows.filter((_, index) => index % FOLDS !== fold).map(({ models }) => models[name]?.score ?? 0)),
      ),
    ]),
  );
  return (name, index) => byName.get(name)?.[index % FOLDS] ?? 0;
}

function measure(rows: readonly ToolRow[], panels: string, list: readonly string[][], known: Known): ToolPanelsRow[] {
  const scores = Object.entries(VOTES).map(([vote, choose]) => ({
    vote,
    panels: list.map((panel) => rows.map((row, index) => voted(row, panel, choose, (name) => known(name, index)))),
  }));
  const whole = scores.find(({ vote }) => vote === WHOLE)?.panels;
  const best = list.map((panel) => bestOf(rows, panel));
  return scores.map(({ vote, panels: own }) => {
    const gains = own.map((scored, at) => {
      const differences = scored.map((score, index) => score - (rows[index]?.models[best[at] ?? ""]?.score ?? 0));
      const relevance = differences.filter((_, index) => rows[index]?.category === "relevance");
      return { all: paired(differences), relevance: paired(relevance) };
    });
    const over = paired(
      rows.map((_, index) => mean(own.map((scored, at) => (scored[index] ?? 0) - (whole?.[at]?.[index] ?? 0)))),
    );
    return {
      panels,
      vote,
      number: list.length,
      mean_gain: 100 * mean(gains.map(({ all }) => all.gain)),
      worst_gain: 100 * Math.min(...gains.map(({ all }) => all.gain)),
      gain_share: mean(gains.map(({ all }) => Number(all.gain > 0))),
      relevance_gain: 100 * mean(gains.map(({ relevance }) => relevance.gain)),
      relevance_below: gains.filter(({ relevance }) => relevance.high < 0).length,
      over_whole_sets: [over.gain, over.low, over.high].map((each) => (100 * each).toFixed(2)).join(" / "),
    };
  });
}

/** The score of what a panel chooses. */
function voted(row: ToolRow, panel: readonly string[], choose: Choose, accuracy: (name: string) => number): number {
  const members = panel.map((name) => ({ name, tier: "strong" as const, accuracy: accuracy(name) }));
  const ballots = peers(members).flatMap((member): Ballot[] => {
    const draft = row.models[member.name];
    return draft ? [{ draft, weight: voteWeight(strengthOf(member)) }] : [];
  });
  const chosen = choose(ballots);
  return scoreOf(row, chosen?.form, chosen?.draft);
}

/** Votes on the tools, then on whole sets of calls of these tools. */
function byTools(ballots: readonly Ballot[]): ReturnType<Choose> {
  const count = tally(
    ballots.map(({ draft: { form }, weight }) => ({ answer: form === undefined ? undefined : namesOf(form), weight })),
    [],
  );
  const names = namesOf(ballots[count?.leader ?? 0]?.draft.form ?? "");
  return plurality(ballots.filter(({ draft: { form } }) => form !== undefined && namesOf(form) === names));
}

function choiceOf(draft: ToolDraft): ReturnType<Choose> {
  return draft.form === undefined ? undefined : { form: draft.form, draft };
}

function plurality(ballots: readonly Ballot[]): ReturnType<Choose> {
  const count = tally(
    ballots.map(({ draft, weight }) => ({ answer: draft.form, weight })),
    [],
  );
  const chosen = count && ballots[count.leader];
  return chosen && choiceOf(chosen.draft);
}

/** Votes on each argument of the calls that `first` has chosen. */
function byArgument(ballots: readonly Ballot[], first: Choose): ReturnType<Choose> {
  const chosen = first(ballots);
  if (!chosen) return undefined;
  const form = voteArguments(
    chosen.form,
    ballots.map(({ draft, weight }) => ({ answer: draft.form, weight })),
  );
  return form === chosen.form ? chosen : { form };
}
