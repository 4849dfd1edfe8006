/** A property of a prompt that can be put in words. */
interface Feature {
  /** For the trace, where the prompt has much of it. */
  words: string;
  /** For the trace, where it has little; absent where that says nothing. */
  little?: string;
  /**
   * What is expected before any data: the weight in standard deviations of the outcome per standard deviation of the feature. Training starts
   * from it, so that few recordings can only correct it a little.
   */
  prior: number;
  value(prompt: Facts): number;
}

interface Facts {
  text: string;
  /** Characters of the whole prompt; `text` may be a sample of it. */
  length: number;
  words: string[];
  lines: string[];
  /** Lines that are options of a closed question. */
  options: string[];
}

const OPTION = /^\s*\(?[A-J][.):]\s/;

export const FEATURES: readonly Feature[] = [
  { words: "a long prompt", little: "a short prompt", prior: 0.1, value: ({ length }) => Math.log1p(length) },
  { words: "many numbers", prior: 0.08, value: ({ text }) => Math.log1p(count(text, /\d+(?:[.,]\d+)*/g)) },
  { words: "dense in digits", prior: 0, value: ({ text }) => count(text, /\d/g) / (text.length + 20) },
  {
    words: "formulas",
    prior: 0.15,
    value: ({ text }) => Math.log1p(count(text, /[=^<>≤≥√∑∫π±×÷]|\\[a-z]+|\b[a-z]\s?[+*/]\s?[a-z\d]\b/g)),
  },
  {
    words: "a calculation or a proof is asked for",
    prior: 0.04,
    value: ({ text }) =>
      some(
        text,
        /\b(calculate|compute|solve|derive|prove|how (many|much)|probability|remainder|integers?|equations?)\b/i,
      ),
  },
  {
    words: "program code is involved",
    prior: 0.25,
    value: ({ text }) =>
      some(
        text,
        /```|\bC\+\+|\b(function|program|algorithm|python|javascript|java|sql|array|binary tree|linked list|compile|regex|code)\b/i,
      ),
  },
  {
    words: "several statements to reason over",
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
    words: "data to be picked out",
    prior: 0.12,
    value: ({ text }) =>
      some(
        text,
        /\b(extract|identify|classify|categori[sz]e|following (data|records|table|reviews|article|text)|json|csv)\b/i,
      ),
  },
  {
    words: "quantities that build on each other",
    prior: 0.08,
    value: ({ text }) =>
      Math.log1p(
        count(
          text,
          /\b(half|twice|double|triple|times|per|percent|more|less|fewer|total|left|remaining|every|average|rate)\b|%/gi,
        ),
      ),
  },
  {
    words: "a text is to be written",
    prior: -0.12,
    value: ({ text }) =>
      some(
        text,
        /\b(write|draft|compose|create|craft|edit)\b.{0,80}\b(email|essay|story|poem|blog|letter|paragraph|plan|headline|post|speech)\b/i,
      ),
  },
  {
    words: "a role is to be played",
    prior: -0.12,
    value: ({ text }) =>
      some(text, /\b(pretend|act as|role ?-?play|the role of|imagine|picture yourself|embody|you are an?)\b/i),
  },
  {
    words: "an open question of explanation or advice",
    prior: -0.12,
    value: ({ text }) =>
      some(text, /\b(explain|describe|discuss|suggest|tips|ideas|insights|what are|why|how (do|does|did|can|have))\b/i),
  },
  {
    words: "a negated question",
    prior: 0.05,
    value: ({ text }) => some(text, /\bNOT\b|\b(except|least|incorrect)\b/i),
  },
  { words: "many options", prior: 0, value: ({ options }) => options.length },
  {
    words: "long options",
    prior: 0,
    value: ({ options }) => Math.log1p(options.join("").length / (options.length || 1)),
  },
  { words: "options that repeat each other's words", prior: 0.06, value: ({ options }) => repetition(options) },
  {
    words: "long words",
    little: "short words",
    prior: 0,
    value: ({ words, text }) => text.length / (words.length + 1),
  },
  { words: "many sentences", prior: 0.05, value: ({ text }) => Math.log1p(count(text, /[.!?](?=\s|$)/g)) },
  { words: "many lines", prior: 0, value: ({ lines }) => Math.log1p(lines.length) },
];

/** The plain features of a prompt, in the order of `FEATURES`. `text` is what is read of it, `length` its whole length in characters. */
export function plain(text: string, length: number): Float64Array {
  const lines = text.split("\n");
  const options = lines.filter((line) => OPTION.test(line));
  const facts = { text, length, words: text.split(/\s+/), lines, options };
  return Float64Array.from(FEATURES, ({ value }) => value(facts));
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

function some(text: string, pattern: RegExp): number {
  return pattern.test(text) ? 1 : 0;
}

/** Share of the options' words that another option has already used, from 0 to 1. */
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
