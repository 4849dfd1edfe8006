/** A token of SQL or PL/pgSQL. */
export interface Token {
  readonly kind: "word" | "quoted" | "text" | "number" | "operator" | "mark";
  /** As written; words in lower case. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** Number of parentheses and brackets around it; an opening or closing one counts as outside. */
  readonly depth: number;
}

const KINDS = [
  ["space", /\s+|--[^\n]*/y],
  ["text", /'(?:[^']|'')*'/y],
  ["quoted", /"[^"]*"/y],
  ["word", /[a-z_][a-z0-9_]*/iy],
  ["number", /\d+(?:\.(?!\.)\d*)?(?:e\d+)?/iy],
  ["mark", /\$\$|::|:=|\.\.|[()[\],;.:]/y],
  ["operator", /[-+*/<>=~!@#%^&|?]+/y],
] as const;

/** Reads the tokens of the text from `start` to `end`. @throws Error at a character that begins none */
export function tokensOf(sql: string, start: number, end: number): Token[] {
  const tokens: Token[] = [];
  let depth = 0;
  for (let at = start; at < end; ) {
    const [kind, length] = readAt(sql, at);
    const text = sql.slice(at, at + length);
    if (text === ")" || text === "]") depth -= 1;
    if (kind !== "space")
      tokens.push({ kind, text: kind === "word" ? text.toLowerCase() : text, start: at, end: at + length, depth });
    if (text === "(" || text === "[") depth += 1;
    at += length;
  }
  return tokens;
}

function readAt(sql: string, at: number): [kind: (typeof KINDS)[number][0], length: number] {
  for (const [kind, pattern] of KINDS) {
    pattern.lastIndex = at;
    const found = pattern.exec(sql)?.[0];
    if (found === undefined) continue;
    // An operator ends before a comment.
    const comment = kind === "operator" ? found.indexOf("--") : -1;
    return [kind, comment > 0 ? comment : found.length];
  }
  throw new Error(`no token begins with ${JSON.stringify(sql.slice(at, at + 20))}`);
}

/** Line of a position, from 1. */
export function lineAt(sql: string, position: number): number {
  return sql.slice(0, position).split("\n").length;
}
