import { readFileSync } from "node:fs";
import { demands } from "./depth.ts";
import { FEATURES } from "./features.ts";
import { type Kind, kindOf } from "./kind.ts";
import { sample } from "./sample.ts";
import { decodeScorer, difficulty, features, type Scorer, score } from "./scorer.ts";

export type { Kind } from "./kind.ts";

export interface DifficultyRating {
  /** How likely the strong tier is to do better than the fast one, 0 to 1. */
  difficulty: number;
  kind: Kind;
  /** What the judgement rests on, in plain words, the weightiest first; at most four, and nothing of the prompt's text. */
  reasons: string[];
}

export interface DifficultyRater {
  /** Takes 0.2 ms for 2,000 characters and under 1.5 ms for 200,000, of which it reads a sample. Never throws. */
  judge(text: string): DifficultyRating;
}

const KINDS: Record<Kind, string> = {
  closed: "a closed question",
  code: "a programming task",
  maths: "a calculation",
  prose: "a text or an explanation",
  extraction: "data to be picked out",
  conversation: "conversation",
};

/** Standard deviations of the outcome below which a feature's part in the score is not worth a reason. */
const NOTABLE = 0.03;

/**
 * What each demand for depth adds to the likelihood that the strong tier does better, as one more chance beside the learned one. Set by hand such that a
 * usual prompt (.12) with one demand is for level medium and with two for high (docs/decisions/difficulty.md).
 */
const DEMAND = 0.07;

/** A judge on the bytes of a head, as npm run train:difficulty writes them. @throws Error when they do not fit */
export function createDifficultyRater(head: Uint8Array): DifficultyRater {
  const trained = decodeScorer(head);
  return {
    judge(text) {
      const read = features(text);
      const judged = score(trained, read);
      const seen = sample(text);
      const kind = kindOf(seen);
      // A closed question asks for one answer, whatever its words.
      const asked = kind === "closed" ? [] : demands(seen);
      return {
        difficulty: 1 - (1 - difficulty(trained, judged.score)) * (1 - DEMAND) ** asked.length,
        kind,
        reasons: reasons(trained, read.plain, judged.trust, kind, asked),
      };
    },
  };
}

/** The judge on the committed head. */
export function loadDifficultyRater(): DifficultyRater {
  return createDifficultyRater(readFileSync(new URL("weights.bin", import.meta.url)));
}

function reasons(head: Scorer, values: Float64Array, trust: number, kind: Kind, asked: readonly string[]): string[] {
  const parts = FEATURES.flatMap(({ words, little }, at) => {
    const [joint, plain] = [head.joint[at], head.plain[at]];
    if (!joint || !plain) return [];
    const above = ((values[at] ?? 0) - plain.mean) / plain.deviation;
    const named = above > 0 ? words : little;
    const part = above * (trust * joint.weight + (1 - trust) * plain.weight);
    return named === undefined || Math.abs(part) < NOTABLE ? [] : [{ named, part }];
  });
  const strongest = parts
    .toSorted((a, b) => Math.abs(b.part) - Math.abs(a.part))
    .map(({ named, part }) => `${named} (${part > 0 ? "harder" : "easier"})`);
  const unfamiliar = trust < 0.5 ? ["unfamiliar wording, so plain features count most"] : [];
  const said = strongest.filter((words) => !words.startsWith(KINDS[kind]));
  const demanded = asked.map((words) => `${words} (harder)`);
  return [KINDS[kind], ...[...demanded, ...said].slice(0, 3 - unfamiliar.length), ...unfamiliar];
}
