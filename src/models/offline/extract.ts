import { type JsonNode, member, parseJson, stringifyJson, toValue } from "../../contract/json.ts";
import { figure, findList, findText, type Subject, subjectOf, within } from "./find.ts";
import { settle } from "./settle.ts";

type Bound =
  | ("minLength" | "maxLength" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum")
  | ("multipleOf" | "minItems" | "maxItems");
/**
 * A JSON Schema. `node` is the same schema with the order of its names and the digits of its numbers; `options` are
 * the values of `const`, or those of `enum` within the bounds, as JSON.
 */
interface Schema extends Partial<Record<Bound, number>> {
  type: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
}
type Rules = Schema & { node: JsonNode; options?: string[] };
/** JSON that is valid against its schema, and whether any part of it was found in the text. */
type Value = { json: string; found: boolean };

const NOWHERE = subjectOf("", {});
/** Largest length to which a list or a text is filled up, in characters, whatever the schema requires. */
const MAX_FILL = 50_000;

/**
 * Fills a JSON Schema with values from a text. Keeps the schema's order and names, including `__proto__` and `1`. A
 * value that is not found is null, left out, or the simplest value that the schema allows.
 * @param schema an object. Of one that the service accepts as a response schema, the result is valid
 * @param known values by name; they are not searched for
 * @returns JSON
 */
export function extract(schema: string, text: string, known: Subject["known"]): string {
  const parsed = parseJson(schema);
  const node = /"(?:\$ref|anyOf|oneOf|allOf)"/.test(schema) ? settle(parsed) : parsed;
  return fill(rulesOf(toValue(node) as Schema, node), subjectOf(text, known)).json;
}

function rulesOf(given: Schema, node: JsonNode): Rules {
  // Of a tool, the schema can have any values.
  const schema = { ...given, type: [given.type ?? usualType(given)].flat() };
  const [values, constant] = [member(node, "enum"), member(node, "const")];
  if (constant) return { ...schema, node, options: [stringifyJson(constant)] };
  if (values?.kind !== "array") return { ...schema, node };
  const isWithin = (json: string) => JSON.parse(conform(schema, JSON.parse(json))) === JSON.parse(json);
  return { ...schema, node, options: values.items.map(stringifyJson).filter(isWithin) };
}

/** The type where a schema names none, as those of tools may do. */
function usualType({ properties, items }: Partial<Schema>): string {
  return properties ? "object" : items ? "array" : "string";
}

function fill(rules: Rules, subject: Subject): Value {
  const make = rules.type.includes("object") ? object : rules.type.includes("array") ? array : scalar;
  const { json, found } = make(rules, subject);
  const isNullable = rules.type.includes("null") && (rules.options ?? ["null"]).includes("null");
  return { json: found || !isNullable ? json : "null", found };
}

function object({ node, properties = {}, required }: Rules, subject: Subject): Value {
  const list = member(node, "properties");
  const values = (list?.kind === "object" ? list.members : []).flatMap(([name, child]) => {
    const schema = properties[name];
    return schema ? { name, ...fill(rulesOf(schema, child), within(subject, name)) } : [];
  });
  const demanded = new Set([required ?? []].flat());
  const members = values.filter(({ name, found }) => found || demanded.has(name));
  const json = members.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(",");
  return { json: `{${json}}`, found: values.some(({ found }) => found) };
}

/** Fills a list. It has objects only if `minItems` requires them; the first one has values from the whole text. */
function array({ node, items, minItems = 0, maxItems }: Rules, subject: Subject): Value {
  const child = member(node, "items");
  if (!items || !child) return { json: "[]", found: false };
  const rules = rulesOf(items, child);
  const isNested = /object|array/.test(String(rules.type));
  const list = isNested ? [] : valuesIn(findList(subject), rules, subject).slice(0, maxItems);
  const found = list.length > 0;
  if (isNested && minItems > 0 && subject.text) list.push(fill(rules, within(subject, "")).json);
  const filler = fill(rules, NOWHERE).json;
  while (list.length < Math.min(minItems, MAX_FILL / filler.length)) list.push(filler);
  return { json: `[${list.join(",")}]`, found };
}

function scalar(rules: Rules, subject: Subject): Value {
  const type = [rules.type].flat().find((type) => type !== "null");
  const [json] = valuesIn([type ? findText(subject, type) : ""], rules, subject);
  const option = rules.options?.find((json) => /^"(?:other|unknown)"/.test(json)) ?? rules.options?.[0];
  const simplest = { string: "", boolean: false }[type ?? ""] ?? 0;
  return { json: json ?? option ?? conform(rules, simplest), found: json !== undefined };
}

/** The texts as JSON. With allowed values: those that occur in the texts, then those that occur in the whole text. */
function valuesIn(texts: string[], rules: Rules, subject: Subject): string[] {
  const { options } = rules;
  if (options) {
    const spaced = (text: string) => ` ${text.toLowerCase().replace(/[^\p{L}\d]+/gu, " ")} `;
    const wordings = options.map((json) => ({ json, words: spaced(String(JSON.parse(json))) }));
    const searched = [...texts, subject.text].map(spaced);
    const named = searched.flatMap((text) => wordings.filter(({ words }) => text.includes(words)));
    return [...new Set(named.map(({ json }) => json))];
  }
  return texts.filter(Boolean).flatMap((text) => {
    if (rules.type.includes("string")) return conform(rules, text);
    if (rules.type.includes("boolean")) return String(!/^(?:no|not|false|never)\b/i.test(text));
    const value = /number|integer/.test(String(rules.type)) ? figure(text) : undefined;
    return value === undefined ? [] : conform(rules, value);
  });
}

/**
 * A value as JSON, adjusted to its bounds: a text is cut or filled up with spaces, a number moves to the nearest
 * bound.
 */
function conform(rules: Schema, value: unknown): string {
  const { minLength = 0, maxLength, multipleOf } = rules;
  if (typeof value === "string") {
    const text = [...value].slice(0, maxLength);
    return JSON.stringify(text.join("") + " ".repeat(Math.max(0, Math.min(minLength, MAX_FILL) - text.length)));
  }
  if (typeof value !== "number") return JSON.stringify(value);
  const isInteger = !rules.type.includes("number");
  const [least, most] = boundsOf(rules, isInteger);
  const near = Math.min(most, Math.max(least, isInteger ? Math.round(value) : value));
  return JSON.stringify(multipleOf ? nearestMultiple(near, multipleOf, least, most) : near);
}

/** The least and the greatest number. Of earlier drafts, exclusive bounds are no numbers. */
function boundsOf(rules: Schema, isInteger: boolean): [least: number, most: number] {
  const { minimum = -Number.MAX_VALUE, maximum = Number.MAX_VALUE, exclusiveMinimum, exclusiveMaximum } = rules;
  const above = typeof exclusiveMinimum === "number" ? exclusiveMinimum : Number.NEGATIVE_INFINITY;
  const below = typeof exclusiveMaximum === "number" ? exclusiveMaximum : Number.POSITIVE_INFINITY;
  if (isInteger)
    return [Math.max(Math.ceil(minimum), Math.floor(above) + 1), Math.min(Math.floor(maximum), Math.ceil(below) - 1)];
  // Between two bounds, or a little away from the only one.
  const step = Math.min(0.01, (Math.min(below, maximum) - Math.max(above, minimum)) / 2);
  return [Math.max(minimum, above + step), Math.min(maximum, below - step)];
}

/** The nearest multiple within the bounds, with the digits that its decimal has. */
function nearestMultiple(value: number, of: number, least: number, most: number): number {
  const multiple = (count: number) => Number((count * of).toPrecision(15));
  const count = Math.round(value / of);
  return [count, count + 1, count - 1].map(multiple).find((each) => each >= least && each <= most) ?? multiple(count);
}
