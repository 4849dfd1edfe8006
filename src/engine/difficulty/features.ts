import { regex } from "../regex.ts";

/** A hand-written feature of a prompt. */
interface Feature {
  /** Phrase for the trace when the value is above the mean. */
  high: string;
  /** Phrase for the trace when the value is below the mean. Absent: a low value is no reason. */
  low?: string;
  /**
   * Prior of the weight, in standard deviations of the outcome per standard deviation of the feature. Training
   * regularises towards it, so a small data set changes it little.
   */
  prior: number;
  value(prompt: Facts): number;
}

interface Facts {
  text: string;
  /** Characters of the whole prompt, of which `text` may be a sample. */
  length: number;
  words: string[];
  lines: string[];
  /** The lines that are options of a closed question, such as "B. Paris". */
  options: string[];
}

const CODE = regex("i")`
  \`\`\`|\bC\+\+|\b(function|program|algorithm|python|javascript|java|sql
  |array|binary tree|linked list|compile|regex|code)\b
`;
const QUANTITIES =
  /\b(half|twice|double|triple|times|per|percent|more|less|fewer|total|left|remaining|every|average|rate)\b|%/gi;
const WRITING = regex("i")`
  \b(write|draft|compose|create|craft|edit)\b.{0,80}
  \b(email|essay|story|poem|blog|letter|paragraph|plan|headline|post|speech)\b
`;
const OPTION = /^\s*\(?[A-J][.):]\s/;

export const FEATURES: readonly Feature[] = [
  { high: "a long prompt", low: "a short prompt", prior: 0.1, value: ({ length }) => Math.log1p(length) },
  { high: "many numbers", prior: 0.08, value: ({ text }) => Math.log1p(count(text, /\d+(?:[.,]\d+)*/g)) },
  { high: "dense in digits", prior: 0, value: ({ text }) => count(text, /\d/g) / (text.length + 20) },
  {
    high: "formulas",
    prior: 0.15,
    value: ({ text }) => Math.log1p(count(text, /[=^<>≤≥√∑∫π±×÷]|\\[a-z]+|\b[a-z]\s?[+*/]\s?[a-z\d]\b/g)),
  },
  {
    high: "a calculation or a proof is asked for",
    prior: 0.04,
    value: ({ text }) =>
      some(
        text,
        /\b(calculate|compute|solve|derive|prove|how (many|much)|probability|remainder|integers?|equations?)\b/i,
      ),
  },
  {
    high: "program code is involved",
    prior: 0.25,
    value: ({ text }) => some(text, CODE),
  },
  {
    high: "several statements to reason over",
    prior: 0.12,
    value: ({ text }) =>
      Math.log1p(
        count(
          text,
          /\b(statements?|true|false|if|then|suppose|assume|given (that|the|two)|each|scenario|conclude)\b/gi,
        ),
      ),
  },
  {
    high: "data to be picked out",
    prior: 0.12,
    value: ({ text }) =>
      some(
        text,
        /\b(extract|identify|classify|categori[sz]e|following (data|records|table|reviews|article|text)|json|csv)\b/i,
      ),
  },
  {
    high: "quantities that build on each other",
    prior: 0.08,
    value: ({ text }) => Math.log1p(count(text, QUANTITIES)),
  },
  {
    high: "a text is to be written",
    prior: -0.12,
    value: ({ text }) => some(text, WRITING),
  },
  {
    high: "a role is to be played",
    prior: -0.12,
    value: ({ text }) =>
      some(text, /\b(pretend|act as|role ?-?play|the role of|imagine|picture yourself|embody|you are an?)\b/i),
  },
  {
    high: "an open question of explanation or advice",
    prior: -0.12,
    value: ({ text }) =>
      some(text, /\b(explain|describe|discuss|suggest|tips|ideas|insights|what are|why|how (do|does|did|can|have))\b/i),
  },
  {
    high: "a negated question",
    prior: 0.05,
    value: ({ text }) => some(text, /\bNOT\b|\b(except|least|incorrect)\b/i),
  },
  { high: "many options", prior: 0, value: ({ options }) => options.length },
  {
    high: "long options",
    prior: 0,
    value: ({ options }) => Math.log1p(options.join("").length / (options.length || 1)),
  },
  { high: "options that repeat each other's words", prior: 0.06, value: ({ options }) => repetition(options) },
  {
    high: "long words",
    low: "short words",
    prior: 0,
    value: ({ words, text }) => text.length / (words.length + 1),
  },
  { high: "many sentences", prior: 0.05, value: ({ text }) => Math.log1p(count(text, /[.!?](?=\s|$)/g)) },
  { high: "many lines", prior: 0, value: ({ lines }) => Math.log1p(lines.length) },
];

/**
 * The values of `FEATURES`, in their order.
 * @param text the sample of the prompt that is read
 * @param length characters of the whole prompt
 */
export function featureValues(text: string, length: number): Float64Array {
  const lines = text.split("\n");
  const options = lines.filter((line) => OPTION.test(line));
  const facts = { text, length, words: text.split(/\s+/), lines, options };
  // Takes half the time of Float64Array.from.
  const values = new Float64Array(FEATURES.length);
  for (let at = 0; at < values.length; at++) values[at] = FEATURES[at]?.value(facts) ?? 0;
  return values;
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

function some(text: string, pattern: RegExp): number {
  return pattern.test(text) ? 1 : 0;
}

/** Share of the options' words that also occur in an earlier option, 0 to 1. */
function repetition(options: readonly string[]): number {
  const words = options.flatMap(
    (option) =>
      option
        .slice(2)
        .toLowerCase()
        .match(/\p{L}+/gu) ?? [],
  );
  return words.length === 0 ? 0 : 1 - new Set(words).size / words.length;
}
