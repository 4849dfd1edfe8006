/**
 * A JSON value as written. It keeps what JSON.parse loses: the spelling of numbers, digits beyond a double, and the
 * order of names that look like integers.
 */
export type JsonNode =
  | { kind: "object"; members: [name: string, value: JsonNode][] }
  | { kind: "array"; items: JsonNode[] }
  | { kind: "scalar"; text: string };

const MAX_DEPTH = 512;

// V8's JSON.parse can read an escaped name as another one (nodejs/node#63785). Here it only validates texts and reads
// single literals; names are never taken from its objects.

/**
 * Parses strict JSON (RFC 8259). A scalar keeps its raw literal, such as `1.0` or `"a\u0041"`. If a name occurs
 * twice, the last value counts, at the position of the first, as with JSON.parse. `__proto__` is an ordinary name.
 * @throws SyntaxError if the text is not JSON or has more than 512 levels. The message does not quote the text.
 */
export function parseJson(text: string): JsonNode {
  try {
    JSON.parse(text);
  } catch {
    throw new SyntaxError("The text is not valid JSON.");
  }
  return new Builder(text).value(0);
}

/** Writes a node as compact JSON, with unchanged literals. */
export function stringifyJson(node: JsonNode): string {
  switch (node.kind) {
    case "object":
      return `{${node.members.map(([name, value]) => `${JSON.stringify(name)}:${stringifyJson(value)}`).join(",")}}`;
    case "array":
      return `[${node.items.map(stringifyJson).join(",")}]`;
    case "scalar":
      return node.text;
  }
}

/** The value as JSON.parse gives it, but with every name as it is written. */
export function toValue(node: JsonNode): unknown {
  if (node.kind === "scalar") return JSON.parse(node.text);
  if (node.kind === "array") return node.items.map(toValue);
  return Object.fromEntries(node.members.map(([name, value]) => [name, toValue(value)]));
}

/** The value of a member; undefined if the node is not an object or has no such member. */
export function member(node: JsonNode, name: string): JsonNode | undefined {
  return node.kind === "object" ? node.members.find(([own]) => own === name)?.[1] : undefined;
}

/** A pair of escaped surrogates, a lone one, or any other escape. */
const ESCAPES = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|.)/gs;
const LONE_LENGTH = "\\ud800".length;

/**
 * JSON text with U+FFFD in place of each escape of a lone surrogate: it is valid JSON, but many parsers refuse it,
 * because UTF-8 cannot write it.
 */
export function wellFormedJson(text: string): string {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return text;
  return text.replace(ESCAPES, (part) => (part.length === LONE_LENGTH ? "\\ufffd" : part));
}

/**
 * The source text of a JSON value, whose parts can be copied as they are written. It builds no tree and skips long
 * strings with `indexOf`, so 64 MB of base64 take 6 ms. It keeps the places that it has found: to copy many parts takes
 * a pass for each level of the text, and not one for each part.
 */
export class JsonText {
  readonly #text: string;
  /** The places of the parts of each object and list, by the place of its bracket. */
  readonly #places = new Map<number, ReadonlyMap<string | number, number>>();

  /** @param text valid JSON; check it with JSON.parse first, because the result for other text has no meaning */
  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Returns the source text of a part: `at(["tools", 2, "parameters"])`. If a name occurs twice, the last value counts,
   * as with JSON.parse.
   * @param path names and indices from the root down
   * @returns undefined if there is no such part
   */
  at(path: readonly (string | number)[]): string | undefined {
    const text = this.#text;
    let start = skipSpace(text, 0);
    for (const step of path) {
      const found = this.#partsOf(start).get(step);
      if (found === undefined) return undefined;
      start = found;
    }
    return text.slice(start, endOfValue(text, start));
  }

  #partsOf(open: number): ReadonlyMap<string | number, number> {
    const known = this.#places.get(open);
    if (known) return known;
    const found = placesOf(this.#text, open);
    this.#places.set(open, found);
    return found;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BRACKET_OPEN = 0x5b;
const BACKSLASH = 0x5c;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

/** Builds the tree of a text that is valid JSON. */
class Builder {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): JsonNode {
    this.#at = skipSpace(this.#text, this.#at);
    const first = this.#text.charCodeAt(this.#at);
    if (first !== BRACE_OPEN && first !== BRACKET_OPEN) return { kind: "scalar", text: this.#literal() };
    if (depth === MAX_DEPTH) throw new SyntaxError(`The JSON is nested deeper than ${MAX_DEPTH} levels.`);
    return first === BRACE_OPEN ? this.#object(depth) : this.#array(depth);
  }

  #object(depth: number): JsonNode {
    const members: [string, JsonNode][] = [];
    const places = new Map<string, number>();
    this.#step();
    while (this.#text.charCodeAt(this.#at) !== BRACE_CLOSE) {
      const name: string = JSON.parse(this.#literal());
      this.#step();
      const value = this.value(depth + 1);
      const place = places.get(name) ?? members.length;
      places.set(name, place);
      members[place] = [name, value];
      this.#toNext();
    }
    this.#at += 1;
    return { kind: "object", members };
  }

  #array(depth: number): JsonNode {
    const items: JsonNode[] = [];
    this.#step();
    while (this.#text.charCodeAt(this.#at) !== BRACKET_CLOSE) {
      items.push(this.value(depth + 1));
      this.#toNext();
    }
    this.#at += 1;
    return { kind: "array", items };
  }

  #literal(): string {
    const start = this.#at;
    this.#at = endOfValue(this.#text, start);
    return this.#text.slice(start, this.#at);
  }

  /** Skips white space, one punctuation mark, and white space. */
  #step(): void {
    this.#at = skipSpace(this.#text, skipSpace(this.#text, this.#at) + 1);
  }

  /** Moves from the end of a value to the next one, or to the closing bracket. */
  #toNext(): void {
    this.#at = skipSpace(this.#text, this.#at);
    if (this.#text.charCodeAt(this.#at) === COMMA) this.#step();
  }
}

/** The indices at which the values of the object or list that starts at `open` start, by name or number. */
function placesOf(text: string, open: number): ReadonlyMap<string | number, number> {
  const places = new Map<string | number, number>();
  const first = text.charCodeAt(open);
  if (first !== BRACE_OPEN && first !== BRACKET_OPEN) return places;
  const closing = first === BRACE_OPEN ? BRACE_CLOSE : BRACKET_CLOSE;
  for (let at = skipSpace(text, open + 1); at < text.length && text.charCodeAt(at) !== closing; ) {
    let value = at;
    if (first === BRACE_OPEN) {
      const end = endOfString(text, at);
      value = skipSpace(text, skipSpace(text, end) + 1);
      places.set(nameOf(text, at, end), value);
    } else places.set(places.size, value);
    at = skipSpace(text, endOfValue(text, value));
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return places;
}

/** The name that the string literal from `start` to `end` spells. */
function nameOf(text: string, start: number, end: number): string {
  const name = text.slice(start + 1, end - 1);
  return name.includes("\\") ? JSON.parse(text.slice(start, end)) : name;
}

/** The index after the value that starts at `start`. */
function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start);
  let at = start;
  if (first !== BRACE_OPEN && first !== BRACKET_OPEN) {
    while (at < text.length && !endsScalar(text.charCodeAt(at))) at += 1;
    return at;
  }
  let depth = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    at += 1;
    if (code === BRACE_OPEN || code === BRACKET_OPEN) depth += 1;
    else if ((code === BRACE_CLOSE || code === BRACKET_CLOSE) && --depth === 0) break;
  }
  return at;
}

/** The index after the string literal that starts at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    at = text.indexOf('"', at);
    if (at < 0) return text.length;
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    // An even number of backslashes escape each other, so the quote is not escaped.
    if ((at - before) % 2 === 1) return at + 1;
  }
}

function endsScalar(code: number): boolean {
  return code === COMMA || code === BRACKET_CLOSE || code === BRACE_CLOSE || isSpace(code);
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}
