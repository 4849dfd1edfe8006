import { clip } from "./text.ts";

/** One turn of the conversation; the engine's turns are of this form. */
interface Turn {
  role: "user" | "assistant";
  text: string;
}

/** Brave takes 400 characters and 50 words, Tavily advises 400 characters. */
const MAX_CHARACTERS = 400;
const MAX_WORDS = 50;

/** Between two sentences: after their mark, and at line breaks. */
const BOUNDARY = /(?<=[。！？])|(?<=[.!?؟])\s+|[\r\n]+/u;
const QUESTION = /[?？؟]["'”’»)\]」』]*$/u;
/** Shorter questions ("Right?", "Why is that?") hardly say what they are about. */
const MIN_QUESTION = 20;

/**
 * What to search the web for: the last thing that the user said. Of a long text it is the last sentence that asks something, else the
 * beginning.
 * @returns at most 400 characters and 50 words on one line; empty if the user said nothing
 */
export function searchQuery(turns: readonly Turn[]): string {
  const text = turns.findLast((turn) => turn.role === "user" && turn.text.trim() !== "")?.text.trim() ?? "";
  const fits = text.length <= MAX_CHARACTERS;
  const chosen = fits ? text : (question(text) ?? text.slice(0, 2 * MAX_CHARACTERS));
  const words = chosen.toWellFormed().split(/[\s\p{Cc}]+/u, MAX_WORDS);
  return clip(words.join(" ").trim(), MAX_CHARACTERS);
}

function question(text: string): string | undefined {
  return text
    .split(BOUNDARY)
    .findLast(
      (sentence) => sentence.length >= MIN_QUESTION && sentence.length <= MAX_CHARACTERS && QUESTION.test(sentence),
    );
}
