import type { Tier } from "../../config.ts";
import { type Sentence, terms } from "./language.ts";

/** What an answering sentence shows beside the words of the question, by the word that asks. */
const SHOWN: ReadonlyArray<readonly [asks: RegExp, shows: RegExp]> = [
  [/\b(?:who|whose)\b/i, /(?<!^)\p{Lu}\p{L}+/u],
  [/\b(?:when|how (?:much|many|old|long|far)|(?:what|which) (?:year|date|time))\b/i, /\d/],
  [/\bwhere\b/i, /\b(?:in|at|on|near|from|to)\b/],
];
/** Stems of words that ask for a kind of thing and need not occur in the answer. */
const ASKING =
  /^(?:mani|much|year|date|day|time|cost|price|name|person|place|tell|accord|text|articl|answer|question)$/;

/**
 * The sentence of a text that answers a question; undefined where none has half of what the question is about, rare words counting more.
 * `strong` also credits a sentence for what the one before it says, as "It opened in 1932" after a sentence on the bridge.
 */
export function answer(question: string, sentences: readonly Sentence[], tier: Tier): string | undefined {
  const asked = [...terms(question.slice(0, 1_000))];
  const wanted = asked.filter((term) => asked.every((other) => ASKING.test(other)) || !ASKING.test(term));
  const all = sentences.filter(({ text }) => !text.endsWith("?"));
  const weights = wanted.map((term) =>
    Math.log(1.1 + all.length / (1 + all.filter(({ terms }) => terms.has(term)).length)),
  );
  const shows = SHOWN.find(([asks]) => asks.test(question))?.[1];
  const scores = all.map(({ text, terms }, i) => {
    const before = tier === "strong" ? all[i - 1]?.terms : undefined;
    const credits = wanted.map((term) => (terms.has(term) ? 1 : before?.has(term) ? 0.5 : 0));
    const score = credits.reduce((sum, credit, k) => sum + credit * (weights[k] ?? 0), 0);
    return shows && !shows.test(text) ? score * 0.7 : score;
  });
  const best = scores.reduce((a, b) => Math.max(a, b), 0);
  const enough = weights.reduce((a, b) => a + b, 0) * 0.45;
  return best > 0 && best >= enough ? all[scores.indexOf(best)]?.text : undefined;
}
