import { type Sentence, terms } from "./language.ts";
import type { Tier } from "./summarise.ts";

/** What an answering sentence shows beside the words of the question, by the word that asks. */
const SHOWN: ReadonlyArray<readonly [asks: RegExp, shows: RegExp]> = [
  [/\b(?:who|whose|qui|wer)\b/i, /(?<!^)\p{Lu}\p{L}+/u],
  [
    /\b(?:when|quand|wann|how (?:much|many|old|long|far)|(?:what|which) (?:year|date|time)|combien|wie ?viele?)\b/i,
    /\d|\b(?:two|three|four|five|ten)\b/,
  ],
  [/\b(?:where|où|wo)\b/i, /\b(?:in|at|on|near|from|to|à|en|im)\b/],
];
/** Stems of words that ask for a kind of thing and need not occur in the answer. */
const ASKING =
  /^(?:mani|much|year|date|day|time|cost|price|name|person|place|tell|mention|accord|text|articl|happen|document|say|answer|question|context|passag|base|provid|follow)$/;

/**
 * The sentence of a text that answers a question; undefined where none has half of what the question is about, rare words counting more.
 * `strong` also credits a sentence for what the one before it says, as "It opened in 1932" after a sentence on the bridge.
 */
export function answer(question: string, sentences: readonly Sentence[], tier: Tier): string | undefined {
  const asked = [...new Set(terms(question.slice(0, 1_000)))];
  const wanted = asked.filter((term) => !ASKING.test(term));
  const all = sentences.filter((sentence) => !sentence.text.endsWith("?"));
  const weights = (wanted.length > 0 ? wanted : asked).map((term) => {
    return { term, weight: Math.log(1.1 + all.length / (1 + all.filter(({ terms }) => terms.has(term)).length)) };
  });
  const shows = SHOWN.find(([asks]) => asks.test(question))?.[1];
  const scores = all.map((sentence, i) => {
    const credit = (term: string) =>
      sentence.terms.has(term) ? 1 : tier === "strong" && all[i - 1]?.terms.has(term) ? 0.5 : 0;
    const score = weights.reduce((sum, { term, weight }) => sum + credit(term) * weight, 0);
    return shows && !shows.test(sentence.text) ? score * 0.7 : score;
  });
  const best = scores.reduce((top, score) => Math.max(top, score), 0);
  const total = weights.reduce((sum, { weight }) => sum + weight, 0);
  return best > 0 && best >= total * 0.45 ? all[scores.indexOf(best)]?.text : undefined;
}
