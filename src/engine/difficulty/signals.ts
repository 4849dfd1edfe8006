import { count, type Reading } from "./reading.ts";
import { TOPIC_NUMBERS, type Topic } from "./topics.ts";

/** A feature of a prompt whose weight is fitted on recorded answers. */
interface Feature {
  /** Phrase for the trace when the value is above the mean. */
  high: string;
  /** Phrase for the trace when the value is below the mean. Absent: a low value is no reason. */
  low?: string;
  /**
   * Prior of the weight, in standard deviations of the rate of failure per standard deviation of the feature. Training
   * regularises towards it.
   */
  prior: number;
  value(reading: Reading): number;
}

/** Short words that a prompt without words counts as having: the mean share, so that it is neither high nor low. */
const SHARE = { short: 0.45, words: 6 };

export const FEATURES: readonly Feature[] = [
  { high: "a long prompt", low: "a short prompt", prior: 0.1, value: ({ length }) => Math.log1p(length) },
  { high: "repeated words", prior: 0.2, value: ({ repeats }) => Math.log1p(repeats) },
  { high: "formulas", prior: 0.2, value: ({ operators }) => Math.log1p(operators) },
  { high: "many numbers", prior: 0.05, value: ({ numbers }) => Math.log1p(numbers) },
  { high: "many parts", prior: 0.1, value: ({ commas }) => Math.log1p(commas) },
  { high: "variables", prior: 0.05, value: ({ singles }) => Math.log1p(singles) },
  {
    high: "short words",
    low: "long words",
    prior: 0.1,
    value: ({ shortWords, words }) => (shortWords + SHARE.short * SHARE.words) / (words + SHARE.words),
  },
  { high: "conditions", prior: 0.05, value: extent("conditions") },
  { high: "numbers in words", prior: 0.05, value: extent("numbers") },
  { high: "statements to reason over", prior: 0.05, value: extent("statements") },
  { high: "program code is involved", prior: 0.15, value: presence("program") },
  { high: "a role is to be played", prior: -0.15, value: presence("role") },
  { high: "an explanation or advice", prior: -0.05, value: presence("explain") },
  { high: "many options", prior: 0, value: ({ options }) => options },
];

/**
 * Marks that the recorded prompts hardly have, so that data cannot teach their weight. Weights are in logits of the
 * difficulty, set by hand (docs/decisions/difficulty.md): one usual demand moves a prompt to level medium, two or three
 * to high.
 */
interface Demand {
  /** Number of the topic. */
  topic: number;
  /** Phrase for the trace. */
  high: string;
  /** Weight of the first mark, of each further one, and the largest number of further ones that count. */
  first: number;
  further: number;
  most: number;
}

export const DEMANDS: readonly Demand[] = demands([
  { topic: "proof", high: "a proof or a derivation is asked for", first: 1.3 },
  { topic: "calculus", high: "calculus", first: 1.1 },
  { topic: "ode", high: "a differential equation", first: 1.6 },
  { topic: "advanced", high: "advanced mathematics", first: 0.7, further: 0.5, most: 3 },
  { topic: "algebra", high: "algebra", first: 0.9 },
  { topic: "probability", high: "a probability", first: 1 },
  { topic: "mechanics", high: "physics", first: 0.5, further: 0.3, most: 2 },
  { topic: "geometry", high: "geometry", first: 0.3, further: 0.3, most: 1 },
  { topic: "science", high: "a science", first: 0.5, further: 0.4, most: 2 },
  { topic: "law", high: "law or a clause", first: 0.6, further: 0.35, most: 5 },
  { topic: "medicine", high: "medicine", first: 0.4, further: 0.4, most: 4 },
  { topic: "finance", high: "finance", first: 0.7, further: 0.4, most: 2 },
  { topic: "compare", high: "a comparison", first: 1.2 },
  { topic: "depth", high: "depth is asked for", first: 0.6, further: 0.5, most: 2 },
  { topic: "design", high: "a design or a plan", first: 1 },
  { topic: "scale", high: "a system under load or failure", first: 0.6, further: 0.5, most: 4 },
  { topic: "puzzle", high: "a puzzle", first: 0.1, further: 0.4, most: 5 },
  { topic: "quantifiers", high: "statements about all or some", first: 0.4, further: 0.25, most: 2 },
  { topic: "inference", high: "a conclusion", first: 0.5 },
  { topic: "debug", high: "a bug", first: 0.4 },
  { topic: "essay", high: "an essay", first: 1.2 },
  { topic: "translation", high: "a translation", first: -0.3 },
  { topic: "brevity", high: "a short text", first: -0.6 },
  { topic: "greeting", high: "small talk", first: -0.5 },
]);

/** Least number of stated quantities of a calculation with several steps, and of words of a text to be judged. */
const LEAST = { quantities: 5, words: 12 };
/** Words for each mark in a text of a language of the lexicon, at most. */
const SPARSE = 16;

/** Subjects whose marks already stand for equations and quantities. */
const CALCULATING: readonly Topic[] = [
  ...(["algebra", "calculus", "ode", "advanced", "probability", "mechanics", "geometry", "finance"] as const),
];
const isPlain = (reading: Reading) => CALCULATING.every((topic) => count(reading, topic) === 0);
const hasEquation = ({ equations, variables }: Reading) => equations > 0 && variables > 0;

/** What shows without a mark that a prompt has several steps, or may have. Weights like those of `DEMANDS`. */
export const STRUCTURE: ReadonlyArray<{ high: string; logits: number; holds(reading: Reading): boolean }> = [
  {
    high: "several quantities",
    logits: 0.25,
    holds: (reading) =>
      reading.isQuestion &&
      reading.code === 0 &&
      !hasEquation(reading) &&
      isPlain(reading) &&
      reading.numbers + count(reading, "numbers") + count(reading, "amounts") >= LEAST.quantities,
  },
  {
    high: "an equation",
    logits: 0.9,
    holds: (reading) => hasEquation(reading) && isPlain(reading),
  },
  {
    high: "a language that is not known",
    logits: 0.6,
    holds: ({ words, code, found }) => words >= LEAST.words && code === 0 && found * SPARSE <= words,
  },
];

/** The values of `FEATURES` in a prompt, in their order. */
export function featureValues(reading: Reading): Float64Array {
  const values = new Float64Array(FEATURES.length);
  for (let at = 0; at < values.length; at++) values[at] = FEATURES[at]?.value(reading) ?? 0;
  return values;
}

// These look up the number of a topic once, not for each prompt.

function demands(
  list: ReadonlyArray<{ topic: Topic; high: string; first: number; further?: number; most?: number }>,
): Demand[] {
  return list.map(({ topic, high, first, further = 0, most = 0 }) => {
    return { topic: TOPIC_NUMBERS[topic], high, first, further, most };
  });
}

/** Gives the logarithm of the number of marks of a topic. */
function extent(topic: Topic): Feature["value"] {
  const number = TOPIC_NUMBERS[topic];
  return ({ marks }) => Math.log1p(marks[number] ?? 0);
}

/** Gives 1 for a prompt with a mark of a topic, otherwise 0. */
function presence(topic: Topic): Feature["value"] {
  const number = TOPIC_NUMBERS[topic];
  return ({ marks }) => ((marks[number] ?? 0) > 0 ? 1 : 0);
}
