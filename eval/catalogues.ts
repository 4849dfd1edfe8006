import { envToConfig } from "../src/config/config.ts";
import type { DifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { chooseLevel } from "../src/generate/level.ts";
import { fitAccuracies } from "../src/learning/fit.ts";
import { type Knowledge, strengthOf } from "../src/models/order.ts";
import { gradedPairs } from "./grader.ts";
import { usualCost } from "./prices.ts";
import type { Row } from "./recording.ts";
import { type Player, replay } from "./replay.ts";
import { accuracyOf, mean, paired, scoreOf } from "./score.ts";
import { shuffled } from "./shuffle.ts";

/** What the engine knows of the accuracies of a catalogue. */
const KNOWN = ["given", "hidden", "learned"] as const;
type Known = (typeof KNOWN)[number];

/** Figures of random catalogues. */
export interface CataloguesRow {
  /** How the tiers are chosen. */
  tiers: string;
  accuracies: Known;
  effort: "auto" | "high";
  /** Accuracy above that of the best single model of the catalogue, in points. */
  mean_gain: number;
  /** Half of the 95 % interval of the mean gain, over catalogues. */
  margin: number;
  worst_gain: number;
  /** Of `high`: mean gain above `auto` in points, and half of its 95 % interval, paired by catalogue. */
  over_auto: number | undefined;
  over_margin: number | undefined;
  /** Calls for a question. */
  calls: number;
  /** Share of the questions for which the best single model was called. */
  best_share: number;
  /** Cost as a share of asking the best single model alone, by list prices. */
  cost_share: number;
}

const CATALOGUES = { seeds: 25, size: 6, strong: 3, rows: 300, graded: 50 };

/**
 * Serves questions with random catalogues of three fast and three strong models, whose order is random. The three best
 * are strong, or any three. The accuracies are given, hidden, or learned from 50 graded disagreements on other rows.
 * @returns undefined for a file with less than six models that ran on nearly all questions
 */
export async function cataloguesPart(
  all: readonly Row[],
  rater: DifficultyRater,
  only: { known?: readonly Known[]; tiers?: readonly string[]; seeds?: number } = {},
): Promise<CataloguesRow[] | undefined> {
  const names = [...new Set(all.flatMap(({ models }) => Object.keys(models)))];
  const usual = names.filter((name) => all.filter(({ models }) => models[name]).length > all.length * 0.95);
  if (usual.length < CATALOGUES.size) return undefined;
  const common = shuffled(
    all.filter(({ models }) => usual.every((name) => models[name])),
    1,
  );
  const [rows, spare] = [common.slice(0, CATALOGUES.rows), common.slice(CATALOGUES.rows)];
  const result: CataloguesRow[] = [];
  for (const tiers of only.tiers ?? ["the best are strong", "at random"])
    for (const known of only.known ?? KNOWN) {
      let ofAuto: number[] | undefined;
      for (const effort of ["auto", "high"] as const) {
        const crews = Array.from({ length: only.seeds ?? CATALOGUES.seeds }, (_, at) =>
          crewOf(usual, rows, tiers, at + 1),
        );
        const served = [];
        for (const [at, crew] of crews.entries())
          served.push(
            await serve(crew, rows, rater, { effort, known, pairs: () => pairsOf(crew, spare, rater, at + 1) }),
          );
        const gains = served.map(({ gain }) => gain);
        const own = paired(gains);
        const over = ofAuto && paired(gains.map((gain, at) => gain - (ofAuto?.[at] ?? 0)));
        ofAuto = gains;
        result.push({
          ...{ tiers, accuracies: known, effort },
          ...{ mean_gain: own.gain, margin: own.gain - own.low, worst_gain: Math.min(...gains) },
          ...{ over_auto: over?.gain, over_margin: over && over.gain - over.low },
          calls: mean(served.map(({ calls }) => calls)),
          best_share: mean(served.map(({ bestShare }) => bestShare)),
          cost_share: mean(served.map(({ costShare }) => costShare)),
        });
      }
    }
  return result;
}

type Crewman = Player & { accuracy: number };

function crewOf(usual: readonly string[], rows: readonly Row[], tiers: string, seed: number): Crewman[] {
  const chosen = shuffled(usual, seed).slice(0, CATALOGUES.size);
  const rated = chosen.map((name) => ({ name, accuracy: accuracyOf(rows, name) }));
  const ranked = tiers === "at random" ? shuffled(rated, -seed) : rated.toSorted((a, b) => b.accuracy - a.accuracy);
  const strong = new Set(ranked.slice(0, CATALOGUES.strong));
  return rated.map((one) => ({ ...one, tier: strong.has(one) ? "strong" : "fast", recording: undefined }));
}

function pairsOf(crew: readonly Crewman[], spare: readonly Row[], rater: DifficultyRater, seed: number) {
  return gradedPairs(spare, crew.map(nameOf), {
    ...{ number: CATALOGUES.graded, seed },
    kindOf: ({ prompt }) => rater.rate(prompt).kind,
  });
}

interface Serving {
  effort: "auto" | "high";
  known: Known;
  pairs: () => ReturnType<typeof gradedPairs>;
}

async function serve(crew: readonly Crewman[], rows: readonly Row[], rater: DifficultyRater, serving: Serving) {
  const { effort, known } = serving;
  const { levels } = envToConfig({});
  const knowledge = known === "learned" ? learned(crew, serving.pairs()) : undefined;
  const best = crew.toSorted((a, b) => b.accuracy - a.accuracy)[0]?.name ?? "";
  const players = crew.map((one): Player => ({ ...one, accuracy: known === "given" ? one.accuracy : undefined }));
  const [scores, calls]: [number[], string[][]] = [[], []];
  for (const row of rows) {
    const conversation = { system: [], messages: [{ role: "user" as const, text: row.prompt }], continues: false };
    const chosen = chooseLevel(rater, levels, { effort, conversation, trace: false });
    const asked = players.map((one) => ({ ...one, recording: row.models[one.name] }));
    const request = { effort, ...chosen, knowledge, prompt: row.prompt, shape: "text" as const, read: () => undefined };
    const outcome = await replay(asked, request);
    scores.push(scoreOf(row, outcome.text, [...new Set([...outcome.calls.toReversed(), ...crew.map(nameOf)])]));
    calls.push(outcome.calls);
  }
  return {
    gain: 100 * (mean(scores) - accuracyOf(rows, best)),
    calls: mean(calls.map(({ length }) => length)),
    bestShare: mean(calls.map((own) => Number(own.includes(best)))),
    costShare: mean(calls.map((own) => own.reduce((sum, name) => sum + usualCost(name), 0))) / usualCost(best),
  };
}

function nameOf({ name }: { name: string }): string {
  return name;
}

function learned(crew: readonly Crewman[], pairs: ReturnType<typeof gradedPairs>): Knowledge {
  const priors = crew
    .map(({ name, tier }) => ({ name, accuracy: strengthOf({ tier }) }))
    .toSorted((a, b) => b.accuracy - a.accuracy);
  const fitted = fitAccuracies(priors, pairs);
  const sentence = `learned from ${CATALOGUES.graded} graded disagreements`;
  return (model) => ({ accuracy: fitted.get(model) ?? 0, sentence });
}
