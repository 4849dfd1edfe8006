import { createRequire } from "node:module";
import type { ItemSentence, ItsFunction, WinkMethods } from "wink-nlp";

/** A sentence as written, and the stems of its words without stop words. */
export interface Sentence {
  text: string;
  terms: ReadonlySet<string>;
}

const require = createRequire(import.meta.url);
let wink: WinkMethods | undefined;

/** Splits a text into sentences, up to 10,000. A line break ends a sentence, unless it only wraps a long line. */
export function sentences(text: string): Sentence[] {
  const found: Sentence[] = [];
  for (const line of text.replace(/(?<=[^\n]{50}[^\n.!?:])\n(?=[\p{L}\d"'(])/gu, " ").split("\n")) {
    if (!line.trim() || found.length >= 10_000) continue;
    // Loaded on first use and shared, because loading takes 0.25 s.
    wink ??= require("wink-nlp")(require("wink-eng-lite-web-model"), ["sbd"]) as WinkMethods;
    const { its } = wink;
    const split = wink.readDoc(line.trim()).sentences();
    split.each((item: ItemSentence) => {
      const words = item.tokens().filter((token) => /^(word|number)$/.test(token.out(its.type)));
      // The package declares this helper with one parameter less than its own interface requires.
      const stems = words.filter((token) => !token.out(its.stopWordFlag)).out(its.stem as ItsFunction<string>);
      found.push({ text: item.out(), terms: new Set(stems) });
    });
  }
  return found;
}

/** The stems of the words of a text, without stop words. */
export function terms(text: string): ReadonlySet<string> {
  return new Set(sentences(text).flatMap((sentence) => [...sentence.terms]));
}
