import { regex } from "../text/regex.ts";
import { canonicalNumber } from "./number.ts";

/** Longest final answer, in UTF-16 units. Longer text is prose. */
const MAX_ANSWER = 200;
/** Longest text without a marker that counts as the answer itself, in UTF-16 units. */
const MAX_UNMARKED = 120;

/**
 * Canonical form of the final answer in a text: an option letter, a number, yes or no, an expression or a few words.
 * Two texts agree when their forms are equal. In doubt the forms differ: a false disagreement costs one call, a false
 * agreement gives a wrong answer.
 *
 * The answer is the text after the last marker (`\boxed{…}`, `#### 42`, `Answer: …`, `the answer is …`), because
 * a model reasons first; else a last line that is formatted as an answer; else the whole text if it is one short line;
 * else the result of a final calculation. Takes linear time and never throws.
 * @returns undefined if the text has no such answer: prose without a marker, a refusal, no text
 */
export function closedAnswer(text: string): string | undefined {
  const normalized = normalize(text);
  const found = markedAnswer(normalized) ?? unmarkedAnswer(normalized) ?? calculatedAnswer(normalized);
  // Removing one layer can expose another, as in `Answer: **(b)**`. Eight rounds are enough for every short text.
  let form = found === undefined ? undefined : canonicalForm(found);
  for (let round = 0; round < 8 && form !== undefined && !PLAIN.test(form); round += 1) {
    const next: string | undefined = canonicalForm(markedAnswer(form) ?? form);
    if (next === form) return form;
    form = next;
  }
  return form;
}

/** A letter or a whole number, which is its own form. Most answers are. */
const PLAIN = /^(?:[a-z]|0|-?[1-9]\d{0,14})$/;

const superscript = (digit: string): number => "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(digit);

/** In ASCII there are no variants, and to see that takes a tenth of the time. */
const NOT_ASCII = /[^\0-\x7f]/;

/** Replaces variants of characters by one: Unicode width, quotes, minus signs, superscripts, vulgar fractions. */
function normalize(text: string): string {
  if (!NOT_ASCII.test(text)) return text;
  return text
    .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]+/g, (digits) => `^${Array.from(digits, superscript).join("")}`)
    .replace(/(\d)(?=[¼½¾⅐-⅞])/g, "$1 ")
    .normalize("NFKC")
    .replace(/[‐‑‒–−]/g, "-")
    .replace(/[‘’]/g, "'")
    .replace(/[“”]/g, '"')
    .replaceAll("⁄", "/");
}

const BOXED = /\\f?boxed\s{0,3}\{/g;
const HASHES = /^[ \t]{0,8}####[ \t]{0,8}/gm;
/**
 * "Answer: ", "the final answer to the question is", "the correct option is"; also bold, in quotes or before a line
 * end.
 */
const PHRASE = regex("gi")`
  (?:\banswers?\b(?:\s(?:to|for)\s[^\n.:]{1,80}?)?[*_\`"']{0,4}
  (?:\s{1,3}(?:is|are|would be|must be)\b(?:\s(?:therefore|thus|then|simply|indeed))?\s{0,2}:?|\s{0,3}[:=])
  |\b(?:correct|right|best|final) (?:option|choice|result|value)[*_\`"']{0,4}\s(?:is|would be)\b\s{0,2}:?)
  [*_\`"']{0,4}\s{0,8}
`;

/** The text after the last marker, or in the last box; undefined without a marker. */
function markedAnswer(text: string): string | undefined {
  const boxed = lastMatch(text, BOXED);
  // A box is never there by chance, so it has precedence.
  if (boxed) return braced(text, end(boxed));
  const hashes = lastMatch(text, HASHES);
  const phrase = lastMatch(text, PHRASE);
  if (hashes && hashes.index > (phrase?.index ?? -1)) {
    const line = firstLine(text.slice(end(hashes)));
    // "####" can also be a heading, which has prose under it; an answer is a number or ends the text.
    if (/^[-+(\\]?[$€£]?[\d.\\]/.test(line) || text.slice(end(hashes)).trim() === line) return line;
  }
  return phrase ? afterPhrase(text.slice(end(phrase))) : undefined;
}

/** The end of a sentence, or a clause that gives the reason. */
const SENTENCE_END = regex("")`
  (?<!\b(?:Mr|Mrs|Ms|Dr|St|Prof|Jr|Sr|vs|No|approx))(?<=\S)[.!?](?=["'*_)]*(?:\s|$))
  |[,;]?\sbecause\s|[,;]\s(?:since|so|which)\s
`;

/** The answer that begins at the start of `rest`. */
function afterPhrase(rest: string): string {
  const line = firstLine(rest.slice(0, 2_000).trimStart());
  const stop = SENTENCE_END.exec(line);
  return stop ? line.slice(0, stop.index) : line;
}

/** The text in the braces that open before `start`. */
function braced(text: string, start: number): string {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    else if (text[at] === "}" && --depth === 0) return text.slice(start, at);
  }
  return firstLine(text.slice(start));
}

/**
 * The whole text if it is one short line or begins with yes or no; else the last line if it is only a bold text,
 * letter, number or formula.
 */
function unmarkedAnswer(text: string): string | undefined {
  const whole = text.trim().replace(/^```\w{0,12}\n|\n```$/g, "");
  if (YES_NO.test(whole)) return whole.slice(0, 20);
  if (whole.length <= MAX_UNMARKED && !whole.includes("\n")) return whole;
  const line = whole.slice(whole.lastIndexOf("\n") + 1).trim();
  if (line.length > MAX_UNMARKED) return undefined;
  if (/^(?:\*\*[^*]+\*\*|\$[^$]+\$|\(?[A-Za-z]\)?)[.]?$/.test(line)) return line;
  return canonicalNumber(line) === undefined ? undefined : line;
}

/** A number that is no part of a range, ordinal, date or name such as GPT-4. */
const LONE_NUMBER =
  /(?<![\w.,:/-])-?\d[\d,]*(?:\.\d+)?(?:\s(?:hundred|thousand|million|billion|trillion)\b)?(?!\w|[-.,:/]\d)/gi;

/**
 * The only number of the last sentence, or the result of its equation, in a text that calculates or concludes. Half
 * of the answers to word problems have no marker and are read by this (docs/decisions/fusion.md).
 */
function calculatedAnswer(text: string): string | undefined {
  if (!/=|\b(?:therefore|thus|hence|so)\b/i.test(text)) return undefined;
  const whole = text.trimEnd();
  const line = whole.slice(whole.lastIndexOf("\n") + 1);
  if (line.length > 1_000) return undefined;
  const sentence = line.split(/[.!?]\s+(?=[A-Z])/).at(-1) ?? "";
  const numbers = sentence.slice(sentence.lastIndexOf("=") + 1).match(LONE_NUMBER) ?? [];
  return numbers.length === 1 ? numbers[0] : undefined;
}

const YES_NO = /^\W{0,3}(yes|no|true|false)\b\W{0,3}(?:[,;:!*—-]|\.(?!\s*\d)|$)/i;
const REFUSAL = regex("")`
  ^(?:i'?m (?:sorry|unable|not sure)|i am (?:sorry|unable|not sure)|i (?:do not|don'?t) know
  |i (?:cannot|can'?t|can not)|sorry\b|as an ai\b)
`;
/** A reason or confirmation after a short answer. */
const REASON = /(?:[,;:]?\sbecause\s.*|\sis (?:the )?(?:correct|right)(?: (?:option|answer|choice|one))?)$/is;
const LETTER = /^(?:option|choice|answer)?\s*[([]?([a-z])[)\].:]?$/;
/** An option with its text, such as `(b) Paris` or `B. Paris`, but not initials of a name. */
const LETTER_AND_TEXT = /^(?:option\s)?(?:[([]([a-z])[)\]]|([a-z])[).:])\s+(?![a-z]\.)\S/;
const LETTERS = /^[([]?[a-z](?:[)\]]?(?:,\s*and\s|,|\s*&|\s(?:and\s)?)\s*[([]?[a-z])+[)\].]?$/;
const EXPRESSION = /[=^*+<>|\\√π∞≤≥±]|\w\(|^[([].*\d.*,.*[)\]]$/;

/** The canonical form of a text that is only the answer. */
function canonicalForm(piece: string): string | undefined {
  if (PLAIN.test(piece)) return piece;
  const text = withoutLayout(piece).replace(REASON, "");
  if (text.length > MAX_ANSWER || !/[\p{L}\p{N}\p{S}]/u.test(text)) return undefined;
  const lowerCase = text.toLowerCase();
  if (REFUSAL.test(lowerCase)) return undefined;
  const letter = LETTER.exec(lowerCase)?.[1] ?? LETTER_AND_TEXT.exec(lowerCase)?.slice(1).find(Boolean);
  if (letter !== undefined) return letter;
  if (LETTERS.test(lowerCase))
    return lowerCase
      .replace(/\band\b/g, " ")
      .match(/[a-z]/g)
      ?.join(",");
  const truth = YES_NO.exec(lowerCase)?.[1];
  if (truth !== undefined) return truth;
  const value = text.replace(/^[A-Za-z]\w{0,20}\s*=\s*(?=[^=]+$)/, "");
  const number = canonicalNumber(value) ?? canonicalNumber(value.replace(/^\((.*)\)$/, "$1")) ?? result(value);
  if (number !== undefined) return number;
  if (EXPRESSION.test(value))
    return (
      value
        .toLowerCase()
        .replace(/\s(?:or|and)\s/g, ",")
        .replace(/\{(\w)\}/g, "$1")
        .replace(/[\s"'`]|[.]$/g, "") || undefined
    );
  return words(lowerCase);
}

/**
 * The number at the end of a calculation such as `144 / 12 = 12 inches`; undefined for an inequality or several
 * answers.
 */
function result(text: string): string | undefined {
  const last = /(?<![<>!=~:])=\s*([^=<>]+)$/.exec(text)?.[1];
  return last === undefined || /[,;](?!\d{3})|\s(?:or|and)\s/.test(text) ? undefined : canonicalNumber(last);
}

/** Removes Markdown, LaTeX layout and the punctuation around the text. */
function withoutLayout(piece: string): string {
  const text = piece.slice(0, 4 * MAX_ANSWER).replace(/\{,\}/g, ",");
  return (text.includes("\\") ? withoutLatex(text) : text)
    .replace(/\$([^$]+)\$/g, "$1")
    .replace(/\*\*|__|`/g, "")
    .replace(/^[\s*_"'>#:-]*(?<![-])(?=[^\s])|[\s*_"',;:!?]+$/g, "")
    .replace(/(?<=\S)\.$/, "")
    .replace(/\s+/g, " ")
    .trim();
}

function withoutLatex(text: string): string {
  return text
    .replace(/\\[,!;: ]|\\(?:left|right|displaystyle|quad)\b|\\[()[\]]/g, "")
    .replace(/(\d)(?=\\[dt]?frac)/g, "$1 ")
    .replace(/\\[dt]?frac\s?(?:\{([^{}]*)\}\s?\{([^{}]*)\}|(\d)(\d))/g, (_, a = "", b = "", c = "", d = "") =>
      [a || c, b || d].map((part) => (/^-?[\w.]*$/.test(part) ? part : `(${part})`)).join("/"),
    )
    .replace(/\\(?:text|mathrm|mathbf|mathit|textbf|operatorname|mbox|f?boxed)\s?\{([^{}]*)\}/g, " $1 ")
    .replace(/\\(?:times|cdot)\b/g, "*")
    .replace(/\\pi\b/g, "π")
    .replace(/\\infty\b/g, "∞")
    .replace(/\\sqrt\b/g, "√")
    .replace(/\^\s?\{?\\circ\}?|\\degree\b/g, "°")
    .replace(/\\([%$#&_{}])/g, "$1");
}

/**
 * The words of a lower-case text without articles and punctuation, except characters that distinguish values: point
 * and minus of numbers, `C++`, `C#`.
 */
function words(lowerCase: string): string | undefined {
  const all = lowerCase
    .replace(/'/g, "")
    .replace(/(?<!\d)[.]|[.](?!\d)|(?<![\s(]|^)-(?!\d)|(?<=\w)-|-(?!\d)|[,;:!?"`()[\]{}…—*_]/g, " ")
    .split(/\s+/)
    .filter((word) => word !== "");
  const significant = all.filter((word) => !/^(?:a|an|the)$/.test(word));
  return (significant.length > 0 ? significant : all).join(" ") || undefined;
}

/** @param pattern with the flag `g`, and never empty */
function lastMatch(text: string, pattern: RegExp): RegExpExecArray | undefined {
  let last: RegExpExecArray | undefined;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) last = match;
  return last;
}

function end(match: RegExpExecArray): number {
  return match.index + match[0].length;
}

function firstLine(text: string): string {
  const line = text.trimStart();
  const stop = line.indexOf("\n");
  return (stop < 0 ? line : line.slice(0, stop)).trim();
}
