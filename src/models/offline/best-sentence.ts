import type { Tier } from "../../terms.ts";
import { type Sentence, terms } from "./language.ts";

/** Stems of words that name the kind of answer and need not occur in it. */
const ANSWER_KINDS = /^(?:mani|much|year|date|day|time|cost|price|name|person|text|articl|context|answer|question)$/;

/**
 * Finds the sentence that answers a question: the one with the most words of the question, rare words weighing more.
 * `strong` also counts, at half the weight, the words of the sentence before it.
 * @returns undefined if no sentence has about half of the question's words by weight
 */
export function answer(question: string, sentences: readonly Sentence[], tier: Tier): string | undefined {
  const wanted = [...terms(question.slice(0, 1_000))].filter((term) => !ANSWER_KINDS.test(term));
  const all = sentences.filter(({ text }) => !text.endsWith("?"));
  const count = (term: string) => all.filter(({ terms }) => terms.has(term)).length;
  const weights = wanted.map((term) => Math.log(1.1 + all.length / (1 + count(term))));
  const kindOfAnswer = /\bwho/i.test(question)
    ? /(?<!^)\p{Lu}/u
    : /\b(?:when|how|year|date)\b/i.test(question)
      ? /\d/
      : /^/;
  const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);
  const scores = all.map(({ text, terms }, i) => {
    const before = tier === "strong" ? all[i - 1]?.terms : undefined;
    const credits = wanted.map((term, k) => (terms.has(term) ? 1 : before?.has(term) ? 0.5 : 0) * (weights[k] ?? 0));
    return sum(credits) * (kindOfAnswer.test(text) ? 1 : 0.7);
  });
  const best = scores.reduce((a, b) => Math.max(a, b), 0);
  return best > 0 && best >= sum(weights) * 0.45 ? all[scores.indexOf(best)]?.text : undefined;
}
