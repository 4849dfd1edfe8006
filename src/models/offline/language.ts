import { createRequire } from "node:module";
import type { ItemSentence, ItsFunction, Tokens, WinkMethods } from "wink-nlp";

/** A sentence as written, with the stems of its words that carry meaning. */
export interface Sentence {
  text: string;
  terms: ReadonlySet<string>;
}

const require = createRequire(import.meta.url);
let loaded: WinkMethods | undefined;

/** Loading takes 0.25 s, so it waits for the first use and is shared. */
function wink(): WinkMethods {
  loaded ??= require("wink-nlp")(require("wink-eng-lite-web-model"), ["sbd"]) as WinkMethods;
  return loaded;
}

/** Splits a text into its first 10,000 sentences. A line break ends one, unless it only wraps a long line. */
export function sentences(text: string): Sentence[] {
  const found: Sentence[] = [];
  for (const line of text.replace(/(?<=[^\n]{50}[^\n.!?:])\n(?=[\p{L}\d"'(])/gu, " ").split("\n")) {
    const split = line.trim() && found.length < 10_000 ? wink().readDoc(line.trim()).sentences() : undefined;
    split?.each((item: ItemSentence) => found.push({ text: item.out(), terms: stems(item.tokens()) }));
  }
  return found;
}

/** The stems of the words that carry meaning. */
export function terms(text: string): ReadonlySet<string> {
  return stems(wink().readDoc(text).tokens());
}

function stems(tokens: Tokens): ReadonlySet<string> {
  const { its } = wink();
  const telling = tokens.filter((token) => /^(word|number)$/.test(token.out(its.type)) && !token.out(its.stopWordFlag));
  // The package types this helper with one parameter too few for its own interface.
  return new Set(telling.out(its.stem as ItsFunction<string>));
}
