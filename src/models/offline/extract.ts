import { Facts, figure, words } from "./facts.ts";
import { findFlag, findList, findNumber, findOptions, findText, type Subject } from "./find.ts";
import { type Sentence, sentences } from "./language.ts";
import type { Reading } from "./read.ts";
import type { Tier } from "./summarise.ts";

type Bound = "minLength" | "maxLength" | "minimum" | "maximum" | "minItems" | "maxItems";

/** The part of JSON Schema that callers may use. */
export interface Schema extends Partial<Record<Bound, number>> {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  description?: string;
}

/**
 * Fills a schema from a text and returns JSON. What the text does not give is null, left out, or else the plainest value that the schema
 * takes. The JSON is written directly, so that members keep the schema's order and any name, even `__proto__` and `1`. An answer holds
 * 10,000 values at most, lest nested lists with a `minItems` multiply.
 */
export function extract(schema: Schema, reading: Reading, tier: Tier): string {
  const subject = { names: [[], [], []], reading, tier, tally: { left: 10_000, effort: 50_000, found: 0 } } as const;
  return fill(schema, within(reading.text || reading.ask, subject), true) ?? "null";
}

/** The subject looked for in another text. */
function within(text: string, subject: Omit<Subject, "text" | "sentences" | "facts">): Subject {
  let read: Sentence[] | undefined;
  const lazily = () => {
    read ??= sentences(text);
    return read;
  };
  return { ...subject, text, sentences: lazily, facts: new Facts(text) };
}

/** The subject with nothing to find it in. */
function nowhere(subject: Subject): Subject {
  return within("", { ...subject, reading: { ask: "", text: "", background: "", begun: "" } });
}

/** The JSON of one value; undefined where nothing is found and nothing must be there. */
function fill(schema: Schema, subject: Subject, must: boolean): string | undefined {
  const { tally } = subject;
  const before = tally.found;
  tally.left -= 1;
  tally.effort -= 1;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (tally.left < 0 && !must) return undefined;
  const types = [schema.type ?? (schema.properties ? "object" : schema.items ? "array" : "string")].flat();
  const nullable = types.includes("null") && (!schema.enum || schema.enum.includes(null));
  const make = types.includes("object") ? object : types.includes("array") ? array : scalar;
  const json = make(schema, tally.effort < 0 ? nowhere(subject) : subject, must && !nullable, types);
  if (tally.found > before || (must && !nullable)) return json;
  return must ? "null" : undefined;
}

function object(schema: Schema, subject: Subject): string {
  const members = Object.entries(schema.properties ?? {}).flatMap(([key, child]) => {
    const names = [[...subject.names[0], ...words(key)], words(key), words(child.description ?? "")] as const;
    const json = fill(child, { ...subject, names }, schema.required?.includes(key) ?? false);
    return json === undefined ? [] : [`${JSON.stringify(key)}:${json}`];
  });
  return `{${members.join(",")}}`;
}

function array({ items = {}, minItems = 0, maxItems }: Schema, subject: Subject, must: boolean): string | undefined {
  const list = (items.properties || items.items ? rows(items, subject) : values(items, subject)).slice(0, maxItems);
  if (list.length < minItems && !must) return undefined;
  subject.tally.found += list.length;
  while (list.length < minItems && subject.tally.left > 0) list.push(fill(items, nowhere(subject), true) ?? "null");
  return `[${list.join(",")}]`;
}

/** An item for each record, in the first way to see the text as records that gives any with half of the members. */
function rows(items: Schema, subject: Subject): string[] {
  const least = Math.max(1, Object.keys(items.properties ?? {}).length / 2);
  for (const texts of records(subject.text)) {
    const found = texts.slice(0, 200).flatMap((text) => {
      if (subject.tally.effort < 0 || !text.trim()) return [];
      const tally = { ...subject.tally, found: 0 };
      const json = fill(items, within(text, { ...subject, names: [[], [], []], tally }), true);
      subject.tally.effort = tally.effort;
      if (!json || tally.found < least) return [];
      subject.tally.left = tally.left;
      return [json];
    });
    if (found.length > 0) return found;
  }
  return [];
}

/** Rows of a table, lines that end in a price, paragraphs, lines, the whole. Rows become forms of lines "column: cell". */
function records(text: string): string[][] {
  const lines = text.split("\n").filter((line) => !/^[|: -]*---/.test(line));
  const paragraphs = text.split(/\n\s*\n/);
  const cells = lines.map((line) => {
    const row = line.replace(/^\s*\||\|\s*$/g, "").trim();
    return row.split(/\|| {2,}|\t/.test(row) ? /\s*\|\s*|\t+| {2,}/ : /\s*[;,]\s*/);
  });
  const head = cells.findIndex(
    (row, i) => row.length > 1 && !/\d/.test(row.join("")) && cells[i + 1]?.length === row.length,
  );
  const length = cells.slice(head).findIndex((row) => row.length !== cells[head]?.length);
  const body = head < 0 ? [] : cells.slice(head + 1, length < 0 ? undefined : head + length);
  const table = body.map((row) => row.map((cell, i) => `${cells[head]?.[i]}: ${cell}`).join("\n"));
  return [table, lines.flatMap(priced), paragraphs.length > 1 ? paragraphs : [], lines, [text]];
}

/** "2 x Blue pen @ 1.50 = 3.00" as a form. Totals and taxes look the same but belong to the whole. */
function priced(line: string): string[] {
  const prices = line.length > 120 || !/\d\D{0,8}$/.test(line) ? [] : new Facts(line).all("price");
  const [, count, name = ""] =
    /^[\s*•-]*(?:(\d+) ?(?:[x×]|pcs|Stk\.?)? +)?(\p{L}.*?)(?= {2,}|\.{2,}|[|:@=\t]|, ?\d| [-–(x×à]| at | \D?\d|$)/u.exec(
      line,
    ) ?? [];
  if (!prices[0] || !name || /total|summe|betrag|tax|vat|mwst|tva|discount|shipping|due|balance/i.test(name)) return [];
  const quantity =
    count ?? /(?<![.,\d])\d{1,6}(?= ?[x×]| pcs| hours| +\D?\d)/i.exec(line.slice(name.length))?.[0] ?? "";
  return [
    `name description: ${name}\nquantity: ${quantity}\nunit price: ${prices[0].text}\namount: ${prices.at(-1)?.text}`,
  ];
}

function values(items: Schema, subject: Subject): string[] {
  const type = String(items.type);
  const options = items.enum?.filter((option) => conform(items, option) === option);
  const convert = (text: string) =>
    /string/.test(type) ? text : /number|integer/.test(type) ? figure(text) : undefined;
  const list = options
    ? findOptions(options, subject.text)
    : items.const === undefined
      ? findList(subject).map(convert)
      : [];
  return list.filter((value) => value !== undefined).map((value) => JSON.stringify(conform(items, value)));
}

function scalar(schema: Schema, subject: Subject, must: boolean, types: string[]): string | undefined {
  const options = schema.enum?.filter((option) => option !== null && conform(schema, option) === option);
  let value =
    options && [findText(subject, false) ?? "", subject.text].flatMap((text) => findOptions(options, text))[0];
  for (const type of options ? [] : types) {
    const find =
      type === "string" ? findText : type === "boolean" ? findFlag : type === "null" ? () => undefined : findNumber;
    value ??= find(subject, must);
  }
  if (value !== undefined) subject.tally.found += 1;
  else if (!must) return undefined;
  const other =
    options?.find((option) => /^(?:other|unknown|none|neutral|general)/i.test(String(option))) ?? options?.[0];
  const plain =
    { string: schema.minLength ? "unknown" : "", number: 0, integer: 0, boolean: false }[types[0] ?? ""] ?? null;
  return JSON.stringify(conform(schema, value ?? other ?? plain));
}

/** Brings a value within the bounds of a schema: text is cut or filled up with spaces, a number moves to the nearest bound. */
function conform(schema: Schema, value: unknown): unknown {
  const { type, minLength = 0, maxLength, minimum = -Number.MAX_VALUE, maximum = Number.MAX_VALUE } = schema;
  if (typeof value === "string") {
    const text = [...value].slice(0, maxLength);
    return text.join("") + " ".repeat(Math.min(10_000, Math.max(0, minLength - text.length)));
  }
  if (typeof value !== "number") return value;
  const whole = /integer/.test(String(type)) && !/number/.test(String(type));
  const [least, most] = whole ? [Math.ceil(minimum), Math.floor(maximum)] : [minimum, maximum];
  return Math.min(most, Math.max(least, whole ? Math.round(value) : value));
}
