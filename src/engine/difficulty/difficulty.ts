import { readFileSync } from "node:fs";
import { readInContext } from "./follow-up.ts";
import { type Kind, kindOf } from "./kind.ts";
import type { Reading } from "./reading.ts";
import { DEMANDS, FEATURES, STRUCTURE } from "./signals.ts";

export { abilityOf, type Kind } from "./kind.ts";

/** Weights of `FEATURES`, fitted on recorded answers. */
export interface Weights {
  /** In the order of `FEATURES`: what standardises a value, and logits per standard deviation. */
  features: ReadonlyArray<{ name: string; mean: number; deviation: number; weight: number }>;
  /** Logit of the difficulty of a prompt with mean values and without demands. */
  offset: number;
}

export interface DifficultyRating {
  /** How often models are expected to fail, 0 to 1. */
  readonly difficulty: number;
  readonly kind: Kind;
  /** Returns phrases for the trace, the most important first; at most four. They never quote the prompt. */
  explain(): string[];
}

export interface DifficultyRater {
  /**
   * Returns at once: the prompt is read when a member of the rating is first used. That takes microseconds for a usual
   * prompt and under 0.3 ms for any, because only a sample of a long one is read. Never throws.
   */
  rate(text: string, context?: Context): DifficultyRating;
}

/** What a prompt is read with. */
export interface Context {
  /** The user's earlier texts, the latest first. A follow-up such as "And its minimum?" is rated with its task. */
  earlier: readonly string[];
  /** Texts that count only for the form that they demand of the answer. */
  instructions: readonly string[];
}

const ALONE: Context = { earlier: [], instructions: [] };

const KINDS: Record<Kind, string> = {
  closed: "a closed question",
  code: "a programming task",
  output: "the result of a program",
  maths: "a calculation",
  prose: "a text or an explanation",
  extraction: "data to be picked out",
  conversation: "conversation",
};

/** Logits that a kind adds, set by hand like those of `DEMANDS`. */
const BY_KIND: Readonly<Partial<Record<Kind, number>>> = { code: 0.95, output: 0.7, conversation: -0.5 };

/** Least effect in logits for which a feature is named as a reason. */
const NOTABLE = 0.1;
/** Largest distance of a value from its mean that counts, in standard deviations. */
const FARTHEST = 3;
/** Most reasons besides the kind. */
const REASONS = 3;

/** @throws Error when the weights do not fit this version's features */
export function createDifficultyRater(weights: Weights): DifficultyRater {
  const isFitting = FEATURES.every(({ high }, at) => weights.features[at]?.name === high);
  if (!isFitting || weights.features.length !== FEATURES.length)
    throw new Error(
      "The difficulty weights do not fit this version's features. Train them again with npm run train:difficulty.",
    );
  return { rate: (text, context = ALONE) => new LazyRating(text, context, weights) };
}

/**
 * Reads its prompt when a member is first used. A class, because V8 keeps an object literal with getters as a hash
 * table.
 */
class LazyRating implements DifficultyRating {
  readonly #text: string;
  readonly #context: Context;
  readonly #weights: Weights;
  #reading: Reading | undefined;
  #kind: Kind | undefined;

  constructor(text: string, context: Context, weights: Weights) {
    this.#text = text;
    this.#context = context;
    this.#weights = weights;
  }

  get #read(): Reading {
    this.#reading ??= readInContext(this.#text, this.#context.earlier);
    return this.#reading;
  }

  get kind(): Kind {
    this.#kind ??= kindOf(this.#read, this.#context.instructions);
    return this.#kind;
  }

  get difficulty(): number {
    let logits = this.#weights.offset + (BY_KIND[this.kind] ?? 0);
    score(this.#read, this.#weights, (effect) => {
      logits += effect;
    });
    return 1 / (1 + Math.exp(-logits));
  }

  explain(): string[] {
    const own = KINDS[this.kind];
    const effects: Array<{ phrase: string; logits: number }> = [];
    score(this.#read, this.#weights, (logits, phrase) => {
      if (phrase !== undefined && phrase !== own) effects.push({ phrase, logits });
    });
    return [own, ...reasons(effects)];
  }
}

/** Makes a rater from the committed weights. */
export function loadDifficultyRater(): DifficultyRater {
  return createDifficultyRater(JSON.parse(readFileSync(new URL("weights.json", import.meta.url), "utf8")));
}

/** Gives each part of a score to `add`: the logits, and the phrase for the trace. */
function score(
  reading: Reading,
  { features }: Weights,
  add: (logits: number, phrase: string | undefined) => void,
): void {
  // An iterator over the entries takes twice the time.
  for (let at = 0; at < features.length; at++) {
    const weight = features[at];
    const feature = FEATURES[at];
    if (!weight || !feature) continue;
    const distance = (feature.value(reading) - weight.mean) / weight.deviation;
    const effect = weight.weight * Math.max(-FARTHEST, Math.min(FARTHEST, distance));
    add(effect, distance > 0 ? feature.high : feature.low);
  }
  // A question with options needs one short answer, even when it contains words such as "compare".
  if (reading.options > 0) return;
  for (const { high, logits, holds } of STRUCTURE) if (holds(reading)) add(logits, high);
  for (const { topic, high, first, further, most } of DEMANDS) {
    const marks = reading.marks[topic] ?? 0;
    if (marks > 0) add(first + further * Math.min(most, marks - 1), high);
  }
}

function reasons(effects: ReadonlyArray<{ phrase: string; logits: number }>): string[] {
  return effects
    .filter(({ logits }) => Math.abs(logits) >= NOTABLE)
    .toSorted((a, b) => Math.abs(b.logits) - Math.abs(a.logits))
    .map(({ phrase, logits }) => `${logits > 0 ? "more" : "less"} difficult: ${phrase}`)
    .slice(0, REASONS);
}
