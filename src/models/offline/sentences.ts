/** A sentence as written, and the stems of its words without stop words. */
export interface Sentence {
  text: string;
  terms: ReadonlySet<string>;
}

const STOP_WORDS = new Set(
  (
    "a about after all also an and any are as at be been but by can could did do does each for from had has have he " +
    "her his how i if in into is it its me more most my no not of on one only or our out over she so some such than " +
    "that the their them then there these they this to too up us was we were what when where which who whom whose " +
    "why will with would you your"
  ).split(" "),
);
/** Words that name the kind of answer and need not occur in it. */
const ANSWER_KINDS = terms("many much year date day time cost price name person text article context answer question");
/** Most sentences that are read of a text. */
const MAX_SENTENCES = 1_000;
/** Made when it is first used, because that takes 10 ms. */
let splitter: Intl.Segmenter | undefined;
const COUNTS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const COUNT = new RegExp(`\\b(\\d+|${COUNTS.join("|")})[ -](?:\\w+ )?(?:sentence|bullet|point)`, "i");

/** Splits a text into sentences. A line break ends a sentence, unless it only wraps a long line. */
export function sentences(text: string): Sentence[] {
  const unwrapped = text.replace(/(?<=[^\n]{50}[^\n.!?:])\n(?=[\p{L}\d"'(])/gu, " ");
  splitter ??= new Intl.Segmenter("en", { granularity: "sentence" });
  const parts = splitter.segment(unwrapped)[Symbol.iterator]().take(MAX_SENTENCES);
  const texts = Array.from(parts, ({ segment }) => segment.trim()).filter(Boolean);
  return texts.map((text) => ({ text, terms: terms(text) }));
}

function terms(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(/\p{L}+|\d+/gu) ?? [];
  const stem = (word: string) => word.replace(/(?<=..)(?:i?e[sd]|[sd]|ing|e|(?<=[^aeiou])y)$/, "");
  return new Set(words.filter((word) => !STOP_WORDS.has(word)).map(stem));
}

/**
 * Finds the sentence that answers a question: the one with the most words of the question, rare words weighing more.
 * @returns undefined if no sentence has about half of the question's words by weight
 */
export function answer(question: string, sentences: readonly Sentence[]): string | undefined {
  const all = sentences.filter(({ text }) => !text.endsWith("?"));
  const weights = Array.from(terms(question.slice(0, 1_000)).difference(ANSWER_KINDS), (term) => {
    const count = all.filter(({ terms }) => terms.has(term)).length;
    return { term, weight: Math.log(1.1 + all.length / (1 + count)) };
  });
  const isWho = /\bwho/i.test(question);
  const kindOfAnswer = isWho ? /(?<!^)\p{Lu}/u : /\b(?:when|how|year|date)\b/i.test(question) ? /\d/ : /^/;
  const scores = all.map(({ text, terms }) => {
    const sum = weights.reduce((sum, { term, weight }) => sum + (terms.has(term) ? weight : 0), 0);
    return sum * (kindOfAnswer.test(text) ? 1 : 0.7);
  });
  const best = scores.reduce((a, b) => Math.max(a, b), 0);
  const least = weights.reduce((sum, { weight }) => sum + weight, 0) * 0.45;
  return best > 0 && best >= least ? all[scores.indexOf(best)]?.text : undefined;
}

/**
 * Summarises a text by its first sentences. The instruction can name a topic and a number of sentences; the default
 * number is a fifth of them.
 */
export function summarise(all: readonly Sentence[], instruction: string): string {
  const prose = all.filter(({ text, terms }) => terms.size >= 4 && /[.!?…"”)]$/.test(text));
  const topic = terms(/\b(?:about|regarding|focus on) ([^\n.:]{1,100})/i.exec(instruction)?.[1] ?? "");
  const onTopic = prose.filter((sentence) => !sentence.terms.isDisjointFrom(topic));
  const usable = [onTopic, prose, all].find((list) => list.length > 0) ?? [];
  const bullets = /bullet|points/i.test(instruction);
  const named = COUNT.exec(instruction)?.[1]?.toLowerCase() ?? "";
  const usual = Math.min(5, Math.max(bullets ? 3 : 1, Math.round(usable.length / 5)));
  const count = Math.min(20, Number(named) || COUNTS.indexOf(named) + 1 || usual);
  const lines = usable.slice(0, count).map(({ text }) => text);
  return bullets ? lines.map((line) => `- ${line.replace(/^[-*•]\s*/, "")}`).join("\n") : lines.join(" ");
}
