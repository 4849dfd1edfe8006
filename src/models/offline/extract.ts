import { type JsonNode, member, parseJson, stringifyJson } from "../../json.ts";
import { Facts, figure } from "./facts.ts";
import { findFlag, findList, findText, type Source, type Subject } from "./find.ts";
import { words } from "./labels.ts";

type Bound = "minLength" | "maxLength" | "minimum" | "maximum" | "minItems" | "maxItems";

/** A node of a JSON Schema, without what is read from the node itself because order and spelling matter. */
interface Rules extends Partial<Record<Bound, number>> {
  type: string | string[];
  required?: string[];
  enum?: unknown[];
  const?: unknown;
  description?: string;
}

/** JSON that keeps to its schema, and whether any of it comes from the source. */
interface Value {
  json: string;
  found: boolean;
}

const NOWHERE: Source = { facts: new Facts(""), summary: undefined, answer: undefined };

/**
 * Fills a JSON Schema and returns JSON. What the source does not give is null, left out, or else the plainest value that the schema
 * takes. The JSON is written directly, so that members keep the schema's order and any name, even `__proto__` and `1`.
 */
export function extract(schema: string, source: Source): string {
  // Lists grow up to 200,000 characters only, lest nested ones with a `minItems` multiply.
  return fill(parseJson(schema), "", { names: [words(""), words(""), words("")], source, budget: { left: 200_000 } })
    .json;
}

function fill(node: JsonNode, name: string, outer: Subject): Value {
  const rules: Rules = JSON.parse(stringifyJson(node));
  const types = [rules.type].flat();
  const own = words(name);
  const subject: Subject = { ...outer, names: [outer.names[0].union(own), own, words(rules.description ?? "")] };
  const make = types.includes("object") ? object : types.includes("array") ? array : scalar;
  const value = make(node, rules, subject);
  const isNullable = types.includes("null") && (rules.enum ?? [rules.const ?? null]).includes(null);
  const json = isNullable && !value.found ? "null" : value.json;
  subject.budget.left -= json.length;
  return { json, found: value.found };
}

function object(node: JsonNode, { required }: Rules, subject: Subject): Value {
  const properties = member(node, "properties");
  const all = properties?.kind === "object" ? properties.members : [];
  const values = all.map(([name, child]) => ({ name, ...fill(child, name, subject) }));
  const members = values.filter(({ name, found }) => found || required?.includes(name));
  const json = members.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(",");
  return { json: `{${json}}`, found: values.some(({ found }) => found) };
}

/** A list. Of objects, one at most is read, from the whole source, and only where there must be one. */
function array(node: JsonNode, { minItems = 0, maxItems }: Rules, subject: Subject): Value {
  const items = member(node, "items") ?? node;
  const rules: Rules = JSON.parse(stringifyJson(items));
  const isNested = /object|array/.test(String(rules.type));
  const options = optionsOf(items, rules);
  const texts = isNested || options ? [] : findList(subject);
  const values = texts.map((text) => (String(rules.type).includes("string") ? text : figure(text)));
  const found = options
    ? mentioned(options, subject)
    : values.flatMap((value) => (value === undefined ? [] : conform(rules, value)));
  const list = found.slice(0, maxItems);
  while (list.length < minItems && subject.budget.left > 0) {
    const source = isNested && list.length === 0 ? subject.source : NOWHERE;
    list.push(fill(items, "", { ...subject, source }).json);
  }
  return { json: `[${list.join(",")}]`, found: found.length > 0 };
}

function scalar(node: JsonNode, rules: Rules, subject: Subject): Value {
  const options = optionsOf(node, rules);
  const types = [rules.type].flat();
  if (options) {
    const [named] = mentioned(options, subject);
    const other = options.find((json) => /^"(?:other|unknown|none|neutral)/i.test(json));
    return { json: named ?? other ?? options[0] ?? "null", found: named !== undefined };
  }
  const values = types.map((type) => {
    if (type === "boolean") return findFlag(subject);
    if (type === "string") return findText(subject, false);
    return type === "null" ? undefined : figure(findText(subject, true) ?? "");
  });
  const value = values.find((value) => value !== undefined);
  const plain = { string: "", number: 0, integer: 0, boolean: false }[types[0] ?? ""];
  return { json: conform(rules, value ?? plain ?? null), found: value !== undefined };
}

/** The values to choose from as JSON, spelt as in the schema; those that break its bounds are none. */
function optionsOf(node: JsonNode, rules: Rules): string[] | undefined {
  const [values, constant] = [member(node, "enum"), member(node, "const")];
  if (constant) return [stringifyJson(constant)];
  if (values?.kind !== "array") return undefined;
  return values.items.map(stringifyJson).filter((json) => {
    const value: unknown = JSON.parse(json);
    return conform(rules, value) === JSON.stringify(value);
  });
}

/** The allowed values that the labelled value or else the text names, in this order. */
function mentioned(options: string[], subject: Subject): string[] {
  const text = `${findText(subject, false) ?? ""}\n${subject.source.facts.text}`.toLowerCase();
  const places = options.map((json) => {
    const word = String(JSON.parse(json)).replaceAll("_", " ").toLowerCase();
    const whole = new RegExp(`(?<![\\p{L}\\d])${RegExp.escape(word)}(?![\\p{L}\\d])`, "u");
    return { json, place: word && text.includes(word) ? text.search(whole) : -1 };
  });
  return places
    .filter(({ place }) => place >= 0)
    .sort((a, b) => a.place - b.place)
    .map(({ json }) => json);
}

/** The JSON of a value within its bounds: text is cut or filled up with spaces, a number moves to the nearest bound. */
function conform(rules: Rules, value: unknown): string {
  const { type, minLength = 0, maxLength, minimum = -Number.MAX_VALUE, maximum = Number.MAX_VALUE } = rules;
  if (typeof value === "string") {
    const text = [...value].slice(0, maxLength);
    return JSON.stringify(text.join("") + " ".repeat(Math.min(100_000, Math.max(0, minLength - text.length))));
  }
  if (typeof value !== "number") return JSON.stringify(value);
  const isWhole = !type.includes("number");
  const [least, most] = isWhole ? [Math.ceil(minimum), Math.floor(maximum)] : [minimum, maximum];
  return JSON.stringify(Math.min(most, Math.max(least, isWhole ? Math.round(value) : value)));
}
