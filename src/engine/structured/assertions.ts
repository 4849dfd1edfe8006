import { type JsonNode, member } from "../../contract/json.ts";
import { compareDecimals, decimalOf, doubleOf, isMultiple, isNumber } from "./decimal.ts";
import { count, type Keyword, list, NoSchema, number, text, texts, truth } from "./keyword.ts";
import { quoted } from "./path.ts";
import { type Check, keyOf, type Rule, shortened, stepsForAll, stringOf } from "./rules.ts";
import { hasType } from "./value-types.ts";

export const TYPES: ReadonlySet<string> = new Set([
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null",
]);

const type: Keyword = (node, schema) => {
  const names = new Set(node.kind === "array" ? texts(node) : [text(node)]);
  if (!names.isSubsetOf(TYPES)) throw new NoSchema();
  const nullable = member(schema, "nullable");
  if (nullable?.kind === "scalar" && nullable.text === "true") names.add("null");
  const expected = `must be ${[...names].join(",")}`;
  return (value, place, check) => {
    if (!hasType(value, names)) check.fail(place, expected);
  };
};

const oneValue: Keyword = (node) => {
  const key = keyOf(node);
  const expected = `must be ${shortened(node)}`;
  return (value, place, check) => {
    if (keyWithin(value, check) !== key) check.fail(place, expected);
  };
};

const values: Keyword = (node) => {
  const keys = new Set(list(node).map(keyOf));
  const expected = `must be one of ${shortened(node)}`;
  return (value, place, check) => {
    if (!keys.has(keyWithin(value, check))) check.fail(place, expected);
  };
};

function keyWithin(value: JsonNode, check: Check): string {
  check.spend(stepsForAll(value));
  return keyOf(value);
}

/** @param isWrong by the order of a number and the bound: -1, 0 or 1 */
function bound(sign: string, isWrong: (order: number) => boolean): Keyword {
  return (node) => {
    const limit = number(node);
    const double = doubleOf(node);
    const expected = `must be ${sign} ${shortened(node)}`;
    return (value, place, check) => {
      if (!isNumber(value)) return;
      const own = doubleOf(value);
      const order =
        own !== undefined && double !== undefined ? Math.sign(own - double) : compareDecimals(number(value), limit);
      if (isWrong(order)) check.fail(place, expected);
    };
  };
}

const multipleOf: Keyword = (node) => {
  const base = number(node);
  if (base.digits === "" || base.negative) throw new NoSchema();
  const expected = `must be multiple of ${shortened(node)}`;
  return (value, place, check) => {
    const own = decimalOf(value);
    const spend = (digits: number) => check.spend(digits >> 5);
    if (own && !isMultiple(own, base, spend)) check.fail(place, expected);
  };
};

/** @param size of a value that the keyword concerns; undefined for others */
function sized(what: string, isMost: boolean, size: (value: JsonNode) => number | undefined): Keyword {
  return (node) => {
    const bound = count(node);
    const expected = `must NOT have ${isMost ? "more" : "fewer"} than ${shortened(node)} ${what}`;
    return (value, place, check) => {
      const own = size(value);
      if (own !== undefined && (isMost ? own > bound : own < bound)) check.fail(place, expected);
    };
  };
}

/** In code points. */
function lengthOf(value: JsonNode): number | undefined {
  const own = stringOf(value);
  if (own === undefined) return undefined;
  let length = 0;
  for (const _ of own) length++;
  return length;
}

const itemsOf = (value: JsonNode) => (value.kind === "array" ? value.items.length : undefined);
const membersOf = (value: JsonNode) => (value.kind === "object" ? value.members.length : undefined);

const pattern: Keyword = (node, _, reader) => {
  const expression = reader.pattern(text(node));
  const expected = `must match pattern ${shortened(node)}`;
  return (value, place, check) => {
    const own = stringOf(value);
    if (own !== undefined && !check.matches(expression, own)) check.fail(place, expected);
  };
};

const uniqueItems: Keyword = (node) => {
  if (!truth(node)) return undefined;
  return (value, place, check) => {
    if (value.kind !== "array") return;
    const keys = new Set(value.items.map((item) => keyWithin(item, check)));
    if (keys.size < value.items.length) check.fail(place, "must NOT have duplicate items");
  };
};

/** The rule of an object that must have members of these names. */
export function demand(names: readonly string[]): Rule {
  return (value, place, check) => {
    if (value.kind !== "object") return;
    check.spend(names.length);
    const own = new Set(value.members.map(([name]) => name));
    for (const name of names) if (!own.has(name)) check.fail(place, `must have the property ${quoted(name)}`);
  };
}

/** Keywords that compare a value with something. */
export const ASSERTIONS: readonly (readonly [name: string, keyword: Keyword])[] = [
  ["type", type],
  ["const", oneValue],
  ["enum", values],
  ["minimum", bound(">=", (order) => order < 0)],
  ["maximum", bound("<=", (order) => order > 0)],
  ["exclusiveMinimum", bound(">", (order) => order <= 0)],
  ["exclusiveMaximum", bound("<", (order) => order >= 0)],
  ["multipleOf", multipleOf],
  ["minLength", sized("characters", false, lengthOf)],
  ["maxLength", sized("characters", true, lengthOf)],
  ["pattern", pattern],
  ["minItems", sized("items", false, itemsOf)],
  ["maxItems", sized("items", true, itemsOf)],
  ["uniqueItems", uniqueItems],
  ["minProperties", sized("properties", false, membersOf)],
  ["maxProperties", sized("properties", true, membersOf)],
  ["required", (node) => demand(texts(node))],
];
