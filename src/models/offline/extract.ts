import type { Tier } from "../../config.ts";
import { Facts, figure } from "./facts.ts";
import { findFlag, findList, findNumber, findOptions, findText, type Subject } from "./find.ts";
import { words } from "./labels.ts";
import type { Reading } from "./read.ts";
import { records } from "./records.ts";

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
  // A request may hold data too: "Can you book a table for 4 on 12 May 2026?"
  const data = reading.ask.split(/(?<=[.?!:]\s)|\n/).filter((unit) => /[@\d]/.test(unit) && !unit.includes("{"));
  const facts = new Facts(reading.text ? [reading.text, ...data].join("\n") : reading.ask);
  const tally = { left: 10_000, effort: 50_000, found: 0 };
  return fill(schema, { names: [[], [], []], facts, reading, tier, tally }, true) ?? "null";
}

/** The subject with nothing to find it in. */
function nowhere(subject: Subject): Subject {
  return { ...subject, facts: new Facts(""), reading: { ask: "", text: "", background: "", begun: "" } };
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
  for (const texts of records(subject.facts.text.slice(0, 60_000))) {
    const found = texts.slice(0, 200).flatMap((text) => {
      if (subject.tally.effort < 0 || !text.trim()) return [];
      const tally = { ...subject.tally, found: 0 };
      const json = fill(items, { ...subject, names: [[], [], []], facts: new Facts(text), tally }, true);
      subject.tally.effort = tally.effort;
      if (!json || tally.found < least) return [];
      subject.tally.left = tally.left;
      return [json];
    });
    if (found.length > 0) return found;
  }
  return [];
}

/** The items of a list of strings or numbers. */
function values(items: Schema, subject: Subject): string[] {
  const type = String(items.type);
  const options = items.enum?.filter((option) => conform(items, option) === option);
  const texts = options || items.const !== undefined || !/string|number|integer/.test(type) ? [] : findList(subject);
  const found = options
    ? findOptions(options, subject.facts.text)
    : texts.map((text) => (/string/.test(type) ? text : figure(text)));
  return found.filter((value) => value !== undefined).map((value) => JSON.stringify(conform(items, value)));
}

const FINDERS: Record<string, typeof findText | typeof findNumber | typeof findFlag> = {
  string: findText,
  number: findNumber,
  integer: findNumber,
  boolean: findFlag,
};

function scalar(schema: Schema, subject: Subject, must: boolean, types: string[]): string | undefined {
  const options = schema.enum?.filter((option) => option !== null && conform(schema, option) === option);
  const texts = options ? [findText(subject, false) ?? "", subject.facts.text] : [];
  let value: unknown = texts.flatMap((text) => findOptions(options ?? [], text))[0];
  for (const type of options ? [] : types) value ??= FINDERS[type]?.(subject, must);
  if (value !== undefined) subject.tally.found += 1;
  else if (!must) return undefined;
  const other = options?.find((option) => /^(?:other|unknown|none|neutral|general)/i.test(String(option)));
  const plain = { string: schema.minLength ? "unknown" : "", number: 0, integer: 0, boolean: false }[types[0] ?? ""];
  return JSON.stringify(conform(schema, value ?? other ?? options?.[0] ?? plain ?? null));
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
