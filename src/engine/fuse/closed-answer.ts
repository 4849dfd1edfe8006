import { canonicalNumber } from "./number.ts";

/** Longest final answer, in UTF-16 units; more is prose. */
const MAX_ANSWER = 200;
/** Longest whole text that is taken for the answer itself where nothing marks one. */
const MAX_UNMARKED = 120;

/**
 * Canonical form of the final answer that a text gives to a closed question: an option letter, a number, yes or no, an expression or a few words. Texts
 * agree exactly when their forms are equal, so the form errs on the side of telling apart: a false disagreement costs one call, a false agreement the answer.
 *
 * The last mark counts, as a model that thinks aloud ends with its answer: `\boxed{…}`, `#### 42`, `Answer: …`, `the answer is …`; else a last line
 * that stands out as the answer, else the whole text if it is one short line, else the number that a calculation ends with. Takes time linear in the text and never throws.
 * @returns undefined if the text gives no such answer: prose without a mark, a refusal, nothing at all.
 */
export function closedAnswer(text: string): string | undefined {
  const plain = toPlain(text);
  const found = marked(plain) ?? standingOut(plain) ?? concluded(plain);
  // Stripping one layer may lay open another (`Answer: **(b)**`); forms are short, so a few rounds settle every one.
  let form = found === undefined ? undefined : canonical(found);
  for (let round = 0; round < 8 && form !== undefined; round += 1) {
    const next: string | undefined = canonical(marked(form) ?? form);
    if (next === form) return form;
    form = next;
  }
  return form;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** One spelling for characters that mean the same: Unicode width, quotes, minus signs, superscripts, vulgar fractions. */
function toPlain(text: string): string {
  return text
    .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]+/g, (digits) => `^${[...digits].map((digit) => SUPERSCRIPTS.indexOf(digit)).join("")}`)
    .replace(/(\d)(?=[¼½¾⅐-⅞])/g, "$1 ")
    .normalize("NFKC")
    .replace(/[‐‑‒–−]/g, "-")
    .replace(/[‘’]/g, "'")
    .replace(/[“”]/g, '"')
    .replaceAll("⁄", "/");
}

const BOXED = /\\f?boxed\s{0,3}\{/g;
const HASHES = /^[ \t]{0,8}####[ \t]{0,8}/gm;
/** "Answer: ", "the final answer to the question is", "the correct option is", also in bold, in quotes, before a line end. */
const PHRASE =
  /(?:\banswers?\b(?:\s(?:to|for)\s[^\n.:]{1,80}?)?[*_`"']{0,4}(?:\s{1,3}(?:is|are|would be|must be)\b(?:\s(?:therefore|thus|then|simply|indeed))?\s{0,2}:?|\s{0,3}[:=])|\b(?:correct|right|best|final) (?:option|choice|result|value)[*_`"']{0,4}\s(?:is|would be)\b\s{0,2}:?)[*_`"']{0,4}\s{0,8}/gi;

/** What the last mark in the text marks, a box before all others; undefined without one. */
function marked(text: string): string | undefined {
  const boxed = lastMatch(text, BOXED);
  // Nobody sets a box by chance.
  if (boxed) return braced(text, end(boxed));
  const hashes = lastMatch(text, HASHES);
  const phrase = lastMatch(text, PHRASE);
  if (hashes && hashes.index > (phrase?.index ?? -1)) {
    const line = firstLine(text.slice(end(hashes)));
    // A heading has prose under it; an answer is a figure or ends the text.
    if (/^[-+(\\]?[$€£]?[\d.\\]/.test(line) || text.slice(end(hashes)).trim() === line) return line;
  }
  return phrase ? afterPhrase(text.slice(end(phrase))) : undefined;
}

function afterPhrase(rest: string): string {
  const line = firstLine(rest.slice(0, 2_000).trimStart());
  const stop =
    /(?<!\b(?:Mr|Mrs|Ms|Dr|St|Prof|Jr|Sr|vs|No|approx))(?<=\S)[.!?](?=["'*_)]*(?:\s|$))|[,;]?\sbecause\s|[,;]\s(?:since|so|which)\s/.exec(
      line,
    );
  return stop ? line.slice(0, stop.index) : line;
}

/** What stands in the braces that open before `start`. */
function braced(text: string, start: number): string {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    else if (text[at] === "}" && --depth === 0) return text.slice(start, at);
  }
  return firstLine(text.slice(start));
}

/** The text where it is one short line, or opens with yes or no; else a last line that is bold, a letter, a number or a formula and nothing else. */
function standingOut(text: string): string | undefined {
  const whole = text.trim().replace(/^```\w{0,12}\n|\n```$/g, "");
  if (YES_NO.test(whole)) return whole.slice(0, 20);
  if (whole.length <= MAX_UNMARKED && !whole.includes("\n")) return whole;
  const line = whole.slice(whole.lastIndexOf("\n") + 1).trim();
  if (line.length > MAX_UNMARKED) return undefined;
  if (/^(?:\*\*[^*]+\*\*|\$[^$]+\$|\(?[A-Za-z]\)?)[.]?$/.test(line)) return line;
  return canonicalNumber(line) === undefined ? undefined : line;
}

/** A number that stands alone: no range, ordinal, date or name such as GPT-4. */
const LONE_NUMBER =
  /(?<![\w.,:/-])-?\d[\d,]*(?:\.\d+)?(?:\s(?:hundred|thousand|million|billion|trillion)\b)?(?!\w|[-.,:/]\d)/gi;

/**
 * The only number of the last sentence, or what its equation comes to, in a text that calculates or draws a conclusion. Models that are not told how to end
 * do so: of 1,307 recorded answers of gpt-4 to word problems 501 have a mark, and 652 more are read by this; of the right ones among these, none is read wrongly.
 */
function concluded(text: string): string | undefined {
  if (!/=|\b(?:therefore|thus|hence|so)\b/i.test(text)) return undefined;
  const whole = text.trimEnd();
  const line = whole.slice(whole.lastIndexOf("\n") + 1);
  if (line.length > 1_000) return undefined;
  const sentence = line.split(/[.!?]\s+(?=[A-Z])/).at(-1) ?? "";
  const numbers = sentence.slice(sentence.lastIndexOf("=") + 1).match(LONE_NUMBER) ?? [];
  return numbers.length === 1 ? numbers[0] : undefined;
}

const YES_NO = /^\W{0,3}(yes|no|true|false)\b\W{0,3}(?:[,;:!*—-]|\.(?!\s*\d)|$)/i;
const REFUSAL =
  /^(?:i'?m (?:sorry|unable|not sure)|i am (?:sorry|unable|not sure)|i (?:do not|don'?t) know|i (?:cannot|can'?t|can not)|sorry\b|as an ai\b)/;
/** What a short answer may add to itself. */
const REASON = /(?:[,;:]?\sbecause\s.*|\sis (?:the )?(?:correct|right)(?: (?:option|answer|choice|one))?)$/is;
const LETTER = /^(?:option|choice|answer)?\s*[([]?([a-z])[)\].:]?$/;
/** An option with its text: `(b) Paris`, `B. Paris`; not the initials of a name. */
const LETTER_AND_TEXT = /^(?:option\s)?(?:[([]([a-z])[)\]]|([a-z])[).:])\s+(?![a-z]\.)\S/;
const LETTERS = /^[([]?[a-z](?:[)\]]?(?:,\s*and\s|,|\s*&|\s(?:and\s)?)\s*[([]?[a-z])+[)\].]?$/;
const EXPRESSION = /[=^*+<>|\\√π∞≤≥±]|\w\(|^[([].*\d.*,.*[)\]]$/;

/** The form of a piece of text that is nothing but the answer. */
function canonical(piece: string): string | undefined {
  const text = withoutLayout(piece).replace(REASON, "");
  if (text.length > MAX_ANSWER || !/[\p{L}\p{N}\p{S}]/u.test(text)) return undefined;
  const low = text.toLowerCase();
  if (REFUSAL.test(low)) return undefined;
  const letter = LETTER.exec(low)?.[1] ?? LETTER_AND_TEXT.exec(low)?.slice(1).find(Boolean);
  if (letter !== undefined) return letter;
  if (LETTERS.test(low))
    return low
      .replace(/\band\b/g, " ")
      .match(/[a-z]/g)
      ?.join(",");
  const truth = YES_NO.exec(low)?.[1];
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
  return words(low);
}

/** The number at the end of a calculation, such as `144 / 12 = 12 inches`; not of a relation or of several answers. */
function result(text: string): string | undefined {
  const last = /(?<![<>!=~:])=\s*([^=<>]+)$/.exec(text)?.[1];
  return last === undefined || /[,;](?!\d{3})|\s(?:or|and)\s/.test(text) ? undefined : canonicalNumber(last);
}

/** Without Markdown, LaTeX's layout and punctuation around it. */
function withoutLayout(piece: string): string {
  return piece
    .slice(0, 4 * MAX_ANSWER)
    .replace(/\{,\}/g, ",")
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
    .replace(/\\([%$#&_{}])/g, "$1")
    .replace(/\$([^$]+)\$/g, "$1")
    .replace(/\*\*|__|`/g, "")
    .replace(/^[\s*_"'>#:-]*(?<![-])(?=[^\s])|[\s*_"',;:!?]+$/g, "")
    .replace(/(?<=\S)\.$/, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** Words without case, articles and punctuation. What tells values apart stays: the point and minus of numbers, the signs of `C++` and `C#`. */
function words(low: string): string | undefined {
  const all = low
    .replace(/'/g, "")
    .replace(/(?<!\d)[.]|[.](?!\d)|(?<![\s(]|^)-(?!\d)|(?<=\w)-|-(?!\d)|[,;:!?"`()[\]{}…—*_]/g, " ")
    .split(/\s+/)
    .filter((word) => word !== "");
  const named = all.filter((word) => !/^(?:a|an|the)$/.test(word));
  return (named.length > 0 ? named : all).join(" ") || undefined;
}

function lastMatch(text: string, pattern: RegExp): RegExpExecArray | undefined {
  let last: RegExpExecArray | undefined;
  for (const match of text.matchAll(pattern)) last = match;
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
