import { readFileSync } from "node:fs";
import { demands } from "./depth.ts";
import { FEATURES } from "./features.ts";
import { type Kind, kindOf } from "./kind.ts";
import { read as readMarks } from "./reading.ts";
import { sample } from "./sample.ts";
import { decodeScorer, difficulty, features, type Scorer, score } from "./scorer.ts";

export type { Kind } from "./kind.ts";

export interface DifficultyRating {
  /** How likely the strong tier is to do better than the fast one, 0 to 1. */
  difficulty: number;
  kind: Kind;
  /** Returns phrases for the trace, the most important first; at most four. They never quote the prompt. */
  explain(): string[];
}

export interface DifficultyRater {
  /** Takes under 1.5 ms for any text, because it reads only a sample of a long one. Never throws. */
  rate(text: string): DifficultyRating;
}

const KINDS: Record<Kind, string> = {
  closed: "a closed question",
  code: "a programming task",
  output: "the result of a program",
  maths: "a calculation",
  prose: "a text or an explanation",
  extraction: "data to be picked out",
  conversation: "conversation",
};

/** A feature is named as a reason when it moves the score by at least this many standard deviations of the outcome. */
const NOTABLE = 0.03;

/**
 * Probability that a demand for depth alone makes the strong tier better; combined with the learned probability as
 * independent events. Set by hand: one demand moves a usual prompt to level medium, two to high
 * (docs/decisions/difficulty.md).
 */
const DEMAND = 0.07;

/**
 * @param weights a trained scorer, as `npm run train:difficulty` writes it
 * @throws Error when the bytes do not fit this version
 */
export function createDifficultyRater(weights: Uint8Array): DifficultyRater {
  const scorer = decodeScorer(weights);
  return {
    rate(text) {
      const sampled = sample(text);
      const read = features(sampled, text.length);
      const scored = score(scorer, read);
      const kind = kindOf(readMarks(text));
      // A closed question needs one short answer, even when it contains words such as "compare".
      const found = kind === "closed" ? [] : demands(sampled);
      return {
        difficulty: 1 - (1 - difficulty(scorer, scored.score)) * (1 - DEMAND) ** found.length,
        kind,
        explain: () => reasons(scorer, read.values, scored.trust, kind, found),
      };
    },
  };
}

/** Makes a rater from the committed weights. */
export function loadDifficultyRater(): DifficultyRater {
  return createDifficultyRater(readFileSync(new URL("weights.bin", import.meta.url)));
}

function reasons(
  scorer: Scorer,
  values: Float64Array,
  trust: number,
  kind: Kind,
  demands: readonly string[],
): string[] {
  const effects = FEATURES.flatMap(({ high, low }, at) => {
    const [joint, alone] = [scorer.joint[at], scorer.alone[at]];
    if (!joint || !alone) return [];
    const deviations = ((values[at] ?? 0) - alone.mean) / alone.deviation;
    const phrase = deviations > 0 ? high : low;
    const effect = deviations * (trust * joint.weight + (1 - trust) * alone.weight);
    return phrase === undefined || Math.abs(effect) < NOTABLE ? [] : [{ phrase, effect }];
  });
  const notable = effects
    .toSorted((a, b) => Math.abs(b.effect) - Math.abs(a.effect))
    .map(({ phrase, effect }) => `${phrase} (${effect > 0 ? "harder" : "easier"})`)
    .filter((reason) => !reason.startsWith(KINDS[kind]));
  const unfamiliar = trust < 0.5 ? ["unfamiliar wording, rated by its simple features"] : [];
  const found = demands.map((phrase) => `${phrase} (harder)`);
  return [KINDS[kind], ...[...found, ...notable].slice(0, 3 - unfamiliar.length), ...unfamiliar];
}
