import { regex } from "../text/regex.ts";

/** Longest answer, in UTF-16 units. Longer text is prose. */
const MAX_ANSWER = 2_000;

/**
 * Canonical form of a final answer that counts character by character, such as the output of a program: case, spaces,
 * quotes and decimal points distinguish two answers. Only what a literal leaves open is unified: spaces outside
 * strings, and the kind of quotes around a string.
 *
 * The answer is what follows the last `==` of an assertion, a code span or block at the end, the text after a marker
 * such as `The output is`, or the whole text if it is one line. Takes linear time and never throws.
 * @returns undefined if the text has no such answer
 */
export function exactAnswer(text: string): string | undefined {
  const found = finalText(withoutBlankLines(text.slice(-4 * MAX_ANSWER)));
  if (found === undefined || found.trim() === "" || found.length > MAX_ANSWER) return undefined;
  return literal(found.trim()) ?? found;
}

/** A block of code at the end of the text, or on a line before a closing remark. */
const BLOCK = /```[\w+-]{0,20}\n([^`]+?)\n?```[^`]{0,200}$/;
/** A code span that ends the text, also in bold or before a full stop. */
const SPAN = /(?<!`)`([^`\n]+)`[*_.\s]{0,5}$/;
const ASSERTION = /\bassert\b.{1,2000}[^=!<>]==\s?([^=\s].*)$/;
const MARKER = regex("i")`
  \b(?:answer|output|result|(?:return(?:ed|s)?|print(?:ed|s)?|final)\s(?:value|output)?)
  [*_]{0,2}\s{0,2}(?:is|will be|would be|:|=)[*_]{0,2}:?\s{1,3}(?!.*\b(?:answer|output|result)[*_]{0,2}\s{0,2}(?:is|:))
  (.+)$
`;

function finalText(text: string): string | undefined {
  const block = BLOCK.exec(text)?.[1];
  if (block !== undefined) return asserted(block) ?? block;
  const last = text.slice(text.lastIndexOf("\n") + 1);
  const span = SPAN.exec(last)?.[1];
  if (span !== undefined) return asserted(span) ?? span;
  const isOneLine = last.length === text.length;
  const equal = asserted(last);
  if (equal !== undefined) return equal;
  const marked = MARKER.exec(last)?.[1];
  if (marked !== undefined) return marked.replace(/^\*\*(.+)\*\*$/, "$1").replace(/(?<=[\w\])}'"])\.\s*$/, "");
  return isOneLine ? text : undefined;
}

/** Drops blank lines at both ends. Spaces at the end of the last line stay. */
function withoutBlankLines(text: string): string {
  const end = text.trimEnd().length;
  return (/[\r\n]/.test(text.slice(end)) ? text.slice(0, end) : text).replace(/^[\r\n]+/, "");
}

/** What the last line asserts to be equal. */
function asserted(lines: string): string | undefined {
  return ASSERTION.exec(lines.slice(lines.lastIndexOf("\n") + 1))?.[1];
}

const STRING = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g;

/** A literal in quotes or brackets, with one kind of quotes and without spaces between its parts. */
function literal(text: string): string | undefined {
  if (!/^[[({'"].*[\])}'"]$/s.test(text)) return undefined;
  let form = "";
  let end = 0;
  for (const match of text.matchAll(STRING)) {
    form += text.slice(end, match.index).replace(/\s+/g, "");
    form += `"${match[0].slice(1, -1).replace(/\\(['"])/g, "$1")}"`;
    end = match.index + match[0].length;
  }
  return form + text.slice(end).replace(/\s+/g, "");
}
