import { lineAt, type Token, tokensOf } from "./sql-tokens.ts";

/** A function with one change. */
export interface Mutant {
  readonly name: string;
  readonly line: number;
  /** The rule that made it. */
  readonly rule: string;
  /** The code before and after, on one line each. */
  readonly before: string;
  readonly after: string;
  /** The text of the function's file with the change. */
  readonly sql: string;
}

/** A replacement of the text from `start` to `end`. */
interface Edit {
  rule: string;
  start: number;
  end: number;
  text: string;
  /** What the report shows, if that is more than what changes. */
  shown?: [start: number, end: number];
}

const OPPOSITES: Readonly<Record<string, readonly string[]>> = {
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "=": ["<>"],
  "<>": ["="],
  "+": ["-"],
  "-": ["+"],
  "/": ["*"],
};
const SWAPS: Readonly<Record<string, string>> = {
  ...{ min: "max", max: "min", greatest: "least", least: "greatest", true: "false", false: "true", and: "or" },
  ...{ or: "and" },
};
/** Words at which a condition ends, or before which it begins. */
const EDGES = new Set(
  (
    "and or where on if elsif when then else end loop select from join left cross full group order returning limit " +
    "union having for as return using is set do in not exists"
  ).split(" "),
);
const OUTSIDE = new Set(["is", "in", "not", "exists", "for", "from", "as"]);
const SIMPLE = /^(?:perform|insert|update|delete|select|return|continue|with|[a-z_]+(?:\.|\[|$))/;
const BLOCKS = new Set(["if", "elsif", "for", "foreach", "end", "begin", "declare", "else", "case", "loop"]);

/** Makes the mutants of a function's file: one change each, in the order of their places. */
export function mutantsOf(name: string, sql: string): Mutant[] {
  const body = sql.indexOf("as $$") + "as $$".length;
  const tokens = tokensOf(sql, body, sql.lastIndexOf("$$"));
  const edits = RULES.flatMap((rule) => tokens.flatMap((_, i) => rule(tokens, i, sql)));
  const seen = new Set<string>();
  return edits
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .map(({ rule, start, end, text, shown = [start, end] }) => ({
      name,
      line: lineAt(sql, start),
      rule,
      before: flat(sql.slice(...shown)),
      after: flat(sql.slice(shown[0], start) + text + sql.slice(end, shown[1])),
      sql: sql.slice(0, start) + text + sql.slice(end),
    }))
    .filter((mutant) => !seen.has(mutant.sql) && seen.add(mutant.sql));
}

function flat(text: string): string {
  return text
    .replace(/--[^\n]*/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

type Rule = (tokens: readonly Token[], at: number, sql: string) => Edit[];

/** The tokens after `at` at its depth, up to one that ends the part. @returns the index of that one */
function endOf(tokens: readonly Token[], at: number, isEnd: (token: Token) => boolean): number {
  const depth = tokens[at]?.depth ?? 0;
  let i = at + 1;
  for (let token = tokens[i]; token; token = tokens[++i]) {
    if (token.depth < depth || (token.depth === depth && isEnd(token))) return i;
  }
  return i;
}

function startOf(tokens: readonly Token[], at: number, isStart: (token: Token) => boolean): number {
  const depth = tokens[at]?.depth ?? 0;
  let i = at - 1;
  for (let token = tokens[i]; token; token = tokens[--i]) {
    // A parenthesis that opens around it is one level up.
    if (token.depth < depth || (token.depth === depth && isStart(token))) return i + 1;
  }
  return 0;
}

const text = (tokens: readonly Token[], i: number): string => tokens[i]?.text ?? "";
const startsAt = (tokens: readonly Token[], i: number): number => tokens[i]?.start ?? 0;
const endsAt = (tokens: readonly Token[], i: number): number => tokens[i]?.end ?? 0;

function isOperand(token: Token | undefined): boolean {
  if (!token) return false;
  if (token.kind === "word") return !EDGES.has(token.text) && !["by", "case", "distinct"].includes(token.text);
  return token.kind !== "operator" && ![",", "(", "[", ":=", ";"].includes(token.text);
}

/** Whether `=` assigns a column in `update … set`. */
function isAssignment(tokens: readonly Token[], at: number): boolean {
  const first = startOf(tokens, at, (token) =>
    /^(?:,|set|where|and|or|on|when|if|then|;|select|values)$/.test(token.text),
  );
  const before = text(tokens, first - 1);
  if (before === "set") return true;
  if (before !== ",") return false;
  const list = startOf(tokens, at, (token) =>
    /^(?:set|where|and|or|on|when|if|;|select|values|from)$/.test(token.text),
  );
  return text(tokens, list - 1) === "set";
}

const operators: Rule = (tokens, i) => {
  const token = tokens[i] as Token;
  if (token.kind !== "operator") return [];
  const { start, end } = token;
  const shown: [number, number] = [
    startsAt(tokens, Math.max(0, i - 4)),
    endsAt(tokens, Math.min(tokens.length - 1, i + 4)),
  ];
  const isBinary = isOperand(tokens[i - 1]);
  if (token.text === "-" && !isBinary) return [{ rule: "sign", start, end, text: "", shown }];
  if (token.text === "*")
    return isBinary && isOperand(tokens[i + 1]) && text(tokens, i - 1) !== "."
      ? [{ rule: "operator", start, end, text: "/", shown }]
      : [];
  if (token.text === "=" && isAssignment(tokens, i)) return [];
  return (OPPOSITES[token.text] ?? []).map((other) => ({ rule: "operator", start, end, text: other, shown }));
};

const words: Rule = (tokens, i) => {
  const { kind, text: word, start, end } = tokens[i] as Token;
  if (kind !== "word") return [];
  const shown: [number, number] = [
    startsAt(tokens, Math.max(0, i - 4)),
    endsAt(tokens, Math.min(tokens.length - 1, i + 6)),
  ];
  const next = text(tokens, i + 1);
  const replace = (rule: string, other: string, to = end): Edit[] => [{ rule, start, end: to, text: other, shown }];
  if (word === "not" && next === "materialized") return [];
  if (word === "not" && next === "null") return replace("negation", "", end);
  if (word === "not") return replace("negation", "");
  if (word === "is" && next === "null") return replace("negation", "is not");
  if (word === "is" && next === "distinct") return replace("negation", "is not");
  if (word === "exists" && text(tokens, i - 1) !== "not") return replace("negation", "not exists");
  if (word === "in" && text(tokens, i + 1) === "(" && text(tokens, i - 1) !== "not")
    return replace("negation", "not in");
  if (word === "distinct" && next === "on")
    return replace(
      "distinct",
      "",
      endsAt(
        tokens,
        endOf(tokens, i + 2, () => true),
      ),
    );
  if (word === "distinct" && next !== "from") return replace("distinct", "");
  if (word === "desc") return replace("order", "");
  if (word === "and" && isBetween(tokens, i)) return [];
  const other = SWAPS[word];
  if (
    other === undefined ||
    ((word === "min" || word === "max" || word === "greatest" || word === "least") && next !== "(")
  )
    return [];
  return replace("swap", other);
};

function isBetween(tokens: readonly Token[], at: number): boolean {
  const first = startOf(tokens, at, ({ text }) => /^(?:and|or|where|on|when|if|between)$/.test(text));
  return text(tokens, first - 1) === "between";
}

/** Drops an operand of `and` or `or`. */
const operands: Rule = (tokens, i) => {
  const { text: word, depth } = tokens[i] as Token;
  if ((word !== "and" && word !== "or") || isBetween(tokens, i)) return [];
  const isEdge = (token: Token) =>
    token.text === ";" ||
    token.text === "," ||
    token.text === ":=" ||
    (token.kind === "word" && EDGES.has(token.text) && !OUTSIDE.has(token.text));
  const right = endOf(tokens, i, isEdge);
  const left = startOf(tokens, i, isEdge);
  const shown: [number, number] = [startsAt(tokens, left), endsAt(tokens, right - 1)];
  const dropped: Edit[] = [
    { rule: "operand", start: startsAt(tokens, i), end: endsAt(tokens, right - 1), text: "", shown },
  ];
  const isFirst = !(["and", "or"].includes(text(tokens, left - 1)) && tokens[left - 1]?.depth === depth);
  if (isFirst)
    dropped.push({ rule: "operand", start: startsAt(tokens, left), end: endsAt(tokens, i), text: "", shown });
  return dropped;
};

/** Negates the condition of `if`, `elsif` and `when`. */
const conditions: Rule = (tokens, i, sql) => {
  const word = text(tokens, i);
  if ((word !== "if" && word !== "elsif" && word !== "when") || text(tokens, i - 1) === "end") return [];
  if (word === "when" && isOfValue(tokens, i)) return [];
  const last = endOf(tokens, i, ({ text }) => text === "then" || text === ";") - 1;
  const [start, end] = [startsAt(tokens, i + 1), endsAt(tokens, last)];
  return [{ rule: "condition", start, end, text: `not coalesce((${sql.slice(start, end)}), false)` }];
};

/** Whether `when` compares the value of `case`. */
function isOfValue(tokens: readonly Token[], at: number): boolean {
  const first = startOf(tokens, at, ({ text }) => text === "case" || text === ";");
  return text(tokens, first - 1) === "case" && text(tokens, first) !== "when";
}

const locks: Rule = (tokens, i) => {
  if (text(tokens, i) !== "for") return [];
  const strength = [1, 2, 3].map((n) => text(tokens, i + n)).join(" ");
  const lock = /^(?:no key update|key share|update|share)/.exec(strength)?.[0];
  if (!lock) return [];
  const last = i + lock.split(" ").length;
  return [
    {
      rule: "lock",
      start: startsAt(tokens, i),
      end: endsAt(tokens, last),
      text: "",
      shown: [startsAt(tokens, Math.max(0, i - 12)), endsAt(tokens, last)],
    },
  ];
};

/** Drops a clause up to what follows it. */
const clauses: Rule = (tokens, i) => {
  const word = text(tokens, i);
  const isStart = (a: string, b: string) => word === a && text(tokens, i + 1) === b;
  const until = (pattern: RegExp): Edit[] => {
    const end = endOf(tokens, i, ({ text }) => pattern.test(text));
    const shown: [number, number] = [startsAt(tokens, Math.max(0, i - 4)), endsAt(tokens, end - 1)];
    return [
      {
        rule: word === "on" ? "conflict" : word,
        start: startsAt(tokens, i),
        end: endsAt(tokens, end - 1),
        text: "",
        shown,
      },
    ];
  };
  if (isStart("order", "by")) return until(/^(?:limit|for|;|loop|returning|union)$/);
  if (isStart("on", "conflict")) return until(/^(?:;|returning)$/);
  if (isStart("filter", "(")) {
    const end = endsAt(
      tokens,
      endOf(tokens, i + 1, ({ text }) => text === ")"),
    );
    return [{ rule: word, start: startsAt(tokens, i), end, text: "", shown: [startsAt(tokens, i - 4), end] }];
  }
  return [];
};

/** Keeps one operand of `coalesce`. */
const defaults: Rule = (tokens, i, sql) => {
  if (text(tokens, i) !== "coalesce" || text(tokens, i + 1) !== "(") return [];
  const close = endOf(tokens, i + 1, ({ text }) => text === ")");
  const comma = endOf(tokens, i + 2, ({ text }) => text === ",");
  if (comma >= close) return [];
  const [start, end] = [startsAt(tokens, i), endsAt(tokens, close)];
  return [
    { rule: "coalesce", start, end, text: `(${sql.slice(startsAt(tokens, i + 2), startsAt(tokens, comma))})` },
    { rule: "coalesce", start, end, text: `(${sql.slice(endsAt(tokens, comma), startsAt(tokens, close))})` },
  ];
};

const isBreak = ({ text, kind }: Token) =>
  text === ";" || (kind === "word" && ["begin", "then", "else", "loop"].includes(text));

/** Drops a statement of PL/pgSQL. */
const statements: Rule = (tokens, i) => {
  const token = tokens[i] as Token;
  if (token.depth !== 0 || i === 0 || !isBreak(tokens[i - 1] as Token)) return [];
  const begin = tokens.findIndex(({ text, depth }) => text === "begin" && depth === 0);
  if (begin < 0 || i < begin || BLOCKS.has(token.text) || !SIMPLE.test(token.text)) return [];
  const end = endOf(tokens, i, ({ text }) => text === ";");
  // `then` and `else` of a case expression begin no statement.
  if (isInCase(tokens, i)) return [];
  return [{ rule: "statement", start: token.start, end: endsAt(tokens, end), text: "" }];
};

function isInCase(tokens: readonly Token[], at: number): boolean {
  const first = startOf(tokens, at, ({ text }) => text === ";" || text === "begin" || text === "loop");
  const before = tokens.slice(first, at).filter(({ kind }) => kind === "word");
  return before.some(({ text }) => text === "case");
}

/** Drops an assignment of `update … set`, and a part of a query that nothing names. */
const parts: Rule = (tokens, i) => {
  const word = text(tokens, i);
  if (word === "set" && text(tokens, i - 1) !== "order") return assignments(tokens, i);
  if (word === "union") {
    const end = endOf(tokens, i, ({ text }) => text === "union" || text === ";");
    return [{ rule: "union", start: startsAt(tokens, i), end: endsAt(tokens, end - 1), text: "" }];
  }
  const name = tokens[i + 1];
  if (word !== "," || name?.kind !== "word" || text(tokens, i + 2) !== "as") return [];
  const open = text(tokens, i + 3) === "(" ? i + 3 : i + 4;
  if (text(tokens, open) !== "(" || tokens.filter(({ text }) => text === name.text).length > 1) return [];
  const close = endOf(tokens, open, ({ text }) => text === ")");
  return [{ rule: "query", start: startsAt(tokens, i), end: endsAt(tokens, close), text: "" }];
};

function assignments(tokens: readonly Token[], set: number): Edit[] {
  const end = endOf(tokens, set, ({ text }) => /^(?:where|from|returning|;)$/.test(text));
  const depth = tokens[set]?.depth ?? 0;
  const commas = tokens.flatMap((token, n) =>
    n > set && n < end && token.text === "," && token.depth === depth ? [n] : [],
  );
  if (commas.length === 0) return [];
  const edges = [set, ...commas, end];
  return edges.slice(0, -1).map((edge, n) => {
    const next = edges[n + 1] as number;
    const [from, to] =
      n === 0
        ? [startsAt(tokens, edge + 1), startsAt(tokens, next + 1)]
        : [startsAt(tokens, edge), endsAt(tokens, next - 1)];
    return { rule: "assignment", start: from, end: to, text: "" };
  });
}

const RULES: readonly Rule[] = [operators, words, operands, conditions, locks, clauses, defaults, statements, parts];
