import { createRequire } from "node:module";
import type { ItemSentence, ItsFunction, WinkMethods } from "wink-nlp";

/** A sentence as written, with the stems of its words that carry meaning. */
export interface Sentence {
  text: string;
  terms: ReadonlySet<string>;
}

const require = createRequire(import.meta.url);
let wink: WinkMethods | undefined;

/** Splits a text into its first 10,000 sentences. A line break ends one, unless it only wraps a long line. */
export function sentences(text: string): Sentence[] {
  const found: Sentence[] = [];
  for (const line of text.replace(/(?<=[^\n]{50}[^\n.!?:])\n(?=[\p{L}\d"'(])/gu, " ").split("\n")) {
    if (!line.trim() || found.length >= 10_000) continue;
    // Loading takes 0.25 s, so it waits for the first use and is shared.
    wink ??= require("wink-nlp")(require("wink-eng-lite-web-model"), ["sbd"]) as WinkMethods;
    const { its } = wink;
    const split = wink.readDoc(line.trim()).sentences();
    split.each((item: ItemSentence) => {
      const words = item.tokens().filter((token) => /^(word|number)$/.test(token.out(its.type)));
      // The package types this helper with one parameter too few for its own interface.
      const stems = words.filter((token) => !token.out(its.stopWordFlag)).out(its.stem as ItsFunction<string>);
      found.push({ text: item.out(), terms: new Set(stems) });
    });
  }
  return found;
}

/** The stems of the words of a text that carry meaning. */
export function terms(text: string): ReadonlySet<string> {
  return new Set(sentences(text).flatMap((sentence) => [...sentence.terms]));
}
