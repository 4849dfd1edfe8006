import { type JsonNode, parseJson, stringifyJson, wellFormedJson } from "../../contract/json.ts";

/**
 * Extracts the JSON object from a model's output. It removes prose, code fences and a byte order mark around the
 * object and repairs its syntax: raw line ends and unescaped pairs of quotes in strings, single quotes, names without
 * quotes, trailing commas, comments, and Python's True, False and None. It replaces token by token and never
 * completes an object, so an object that was cut off is not repaired. The order of members and the digits of numbers
 * do not change. Escapes of lone surrogates become U+FFFD.
 *
 * Of several objects the last one counts, because a model reasons first (docs/decisions/strict-json.md). If the last
 * possible object cannot be repaired, there is no result.
 * @returns the object, or any other JSON value if the whole output is valid JSON; undefined if there is none
 */
export function repairJson(answer: string): string | undefined {
  return read(answer).text;
}

/** As `repairJson`, for the arguments of a call. @returns undefined for objects that differ: none of them counts */
export function repairArguments(text: string): string | undefined {
  return read(text, false).text;
}

/**
 * The JSON object of an answer with shape `extract`.
 * @returns `structured`: the object as compact JSON with its literals unchanged; if there is none, `error` gives the
 *   reason
 */
export function extractObject(answer: string): { structured: string | null; error: string | null } {
  const { text, reason } = read(answer);
  if (text === undefined) return { structured: null, error: reason };
  let node: JsonNode;
  try {
    node = parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { structured: null, error: error.message };
  }
  if (node.kind === "object") return { structured: stringifyJson(node), error: null };
  return { structured: null, error: node.kind === "array" ? REASONS.list : REASONS.scalar };
}

const REASONS = {
  none: "The answer holds no JSON object.",
  list: "The answer is a JSON list, not an object.",
  scalar: "The answer is a single JSON value, not an object.",
  invalid: "The JSON in the answer is not valid.",
  cutOff: "The JSON in the answer is cut off, or not valid.",
  several: "The answer holds several JSON objects.",
};

type Reading = { text: string; reason?: never } | { text?: undefined; reason: string };

/** The probable start of an object or of a list of objects; excludes sets and formulas in prose. */
const START = /\{(?=\s*(?:$|["'}]|[A-Za-z_$][\w$]*\s*(?::|$)|\/(?:[/*]|$)))|(?<!\\)\[(?=\s*(?:\{|$))/g;

/** @param lastCounts whether the last of several objects counts; if not, there is no result */
function read(answer: string, lastCounts = true): Reading {
  const reading = readRaw(answer, lastCounts);
  return reading.text === undefined ? reading : { text: wellFormedJson(reading.text) };
}

function readRaw(answer: string, lastCounts: boolean): Reading {
  // trim() also removes a byte order mark.
  const trimmed = answer.trim();
  if (isJson(trimmed)) return { text: trimmed };
  let reading: Reading = { reason: REASONS.none };
  let end = 0;
  for (const { index } of trimmed.matchAll(START)) {
    if (index < end) continue;
    const span = translate(trimmed, index);
    if (!span) return { reason: REASONS.cutOff };
    end = span.end;
    if (span.json === "{}" && reading.text !== undefined) continue;
    const { text = span.json } = reading;
    if (!lastCounts && text !== span.json && text !== "{}") return { reason: REASONS.several };
    if (!isJson(span.json)) reading = { reason: REASONS.invalid };
    else reading = span.json.startsWith("{") ? { text: span.json } : { reason: REASONS.list };
  }
  return reading;
}

const LITERALS: ReadonlyMap<string, string> = new Map([
  ["True", "true"],
  ["False", "false"],
  ["None", "null"],
]);

/**
 * Translates the text from the bracket at `start` to its closing bracket into JSON, token by token. The result can
 * still be invalid.
 * @returns undefined if the bracket is never closed
 */
function translate(text: string, start: number): { end: number; json: string } | undefined {
  const tokens: string[] = [];
  const closers: string[] = [];
  for (let at = start; at < text.length; ) {
    const next = tokenEnd(text, at);
    const token = text.slice(at, next);
    at = next;
    const last = tokens.at(-1) ?? "";
    if (/^(?:\s|\/[/*])/.test(token)) continue;
    if (/^["']/.test(token)) tokens.push(toJsonString(token));
    else if (token === ":" && /^[A-Za-z_$]/.test(last)) tokens.splice(-1, 1, JSON.stringify(last), token);
    else if (token === "{" || token === "[") {
      closers.push(token === "{" ? "}" : "]");
      tokens.push(token);
    } else if (token === "}" || token === "]") {
      if (closers.pop() !== token) return undefined;
      if (last === ",") tokens.pop();
      tokens.push(token);
      // Replaced only now, because a member name can be spelled like a literal.
      if (closers.length === 0) return { end: at, json: tokens.map((each) => LITERALS.get(each) ?? each).join("") };
    } else tokens.push(token);
  }
  return undefined;
}

const SPACE_OR_WORD = /\s+|[^\s"'{}[\]:,/]+/y;

/** The index after the token, comment or space that starts at `start`. */
function tokenEnd(text: string, start: number): number {
  const first = text.charAt(start);
  if (first === '"' || first === "'") return stringEnd(text, start);
  if (text.startsWith("//", start)) return indexAfter(text, "\n", start);
  if (text.startsWith("/*", start)) return indexAfter(text, "*/", start + 2);
  SPACE_OR_WORD.lastIndex = start;
  return SPACE_OR_WORD.test(text) ? SPACE_OR_WORD.lastIndex : start + 1;
}

const AFTER_STRING = /\s*(?:[,:}\]]|\/[/*]|$)/y;

/**
 * The index after the quote that closes the string at `start`; the end of the text if that is ambiguous. Unescaped
 * quotes in pairs belong to the string, as in `"He said "yes", then left."`. An apostrophe between two letters is not
 * a quote.
 */
function stringEnd(text: string, start: number): number {
  const quote = text.charAt(start);
  let isQuoting = false;
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === "\\") at += 1;
    if (character !== quote) continue;
    const around = text.slice(at - 1, at + 2);
    if (isQuoting) {
      if (/^\s/.test(around)) break;
      isQuoting = false;
      continue;
    }
    AFTER_STRING.lastIndex = at + 1;
    if (AFTER_STRING.test(text)) return at + 1;
    if (/^\p{L}'\p{L}$/u.test(around)) continue;
    if (at > start + 1 && !/^[\s([{].\S/.test(around)) break;
    isQuoting = true;
  }
  return text.length;
}

/**
 * Converts a string in single or double quotes to a JSON string. A backslash that escapes nothing is kept as a
 * character.
 */
function toJsonString(literal: string): string {
  const content = literal.slice(1, -1).replace(/\\(?:["\\/bfnrt]|u[\da-fA-F]{4})|\\'|["\\\p{Cc}]/gu, (part) => {
    if (part === "\\'") return "'";
    return part.length > 1 ? part : JSON.stringify(part).slice(1, -1);
  });
  return `"${content}"`;
}

function indexAfter(text: string, mark: string, start: number): number {
  const found = text.indexOf(mark, start);
  return found < 0 ? text.length : found + mark.length;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
