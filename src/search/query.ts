import { clip } from "./text.ts";

/** One message of the conversation, as the engine has it. */
interface Message {
  role: "user" | "assistant";
  text: string;
}

/** Brave's limits are 400 characters and 50 words; Tavily recommends at most 400 characters. */
const MAX_CHARACTERS = 400;
const MAX_WORDS = 50;

/** The end of a sentence: after its punctuation mark, or at a line break. */
const BOUNDARY = /(?<=[。！？])|(?<=[.!?؟])\s+|[\r\n]+/u;
const QUESTION = /[?？؟]["'”’»)\]」』]*$/u;
/** Characters at the end and at the beginning of a text in which a question is looked for, which takes some ms. */
const SEARCHED = 16_384;
/** Shorter questions ("Right?", "Why is that?") rarely name their subject. In letters of the Latin script. */
const MIN_QUESTION = 20;
/** Scripts that say the same with a third of the letters, and with two thirds. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu;
const WITHOUT_VOWELS = /[\p{Script=Arabic}\p{Script=Hebrew}]/gu;

/**
 * Makes the search query from the last user message. Of a long message it takes the last question of its end, else of
 * its beginning, or the beginning itself if there is none.
 * @returns at most 400 characters and 50 words on one line; empty if there is no text of the user
 */
export function searchQuery(messages: readonly Message[]): string {
  const text = messages.findLast((message) => message.role === "user" && message.text.trim() !== "")?.text.trim() ?? "";
  const fits = text.length <= MAX_CHARACTERS;
  const asked = () => question(text.slice(-SEARCHED)) ?? question(text.slice(0, SEARCHED));
  const chosen = fits ? text : (asked() ?? text.slice(0, 2 * MAX_CHARACTERS));
  const words = chosen.toWellFormed().split(/[\s\p{Cc}]+/u, MAX_WORDS);
  return clip(words.join(" ").trim(), MAX_CHARACTERS);
}

function question(text: string): string | undefined {
  return text
    .split(BOUNDARY)
    .findLast(
      (sentence) =>
        sentence.length <= MAX_CHARACTERS && QUESTION.test(sentence) && latinLength(sentence) >= MIN_QUESTION,
    );
}

/** About the length that a text would have in the Latin script. */
function latinLength(text: string): number {
  const count = (script: RegExp) => text.match(script)?.length ?? 0;
  return text.length + 2 * count(DENSE) + 0.5 * count(WITHOUT_VOWELS);
}
