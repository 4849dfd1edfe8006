import assert from "node:assert/strict";
import { test } from "vitest";
import { anthropic } from "../../../src/models/wire/anthropic.ts";
import { google } from "../../../src/models/wire/google.ts";
import { openai } from "../../../src/models/wire/openai.ts";

const FORMATS = { openai, anthropic, google };
const strictIn = (schema: unknown): string[] => {
  const text = typeof schema === "string" ? schema : JSON.stringify(schema);
  return Object.entries(FORMATS).flatMap(([name, { takesStrictly }]) => (takesStrictly(text) ? name : []));
};
const ALL = ["openai", "anthropic", "google"];

/** An object that is closed and requires all properties. */
function object(properties: Record<string, unknown>, more: object = {}) {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false, ...more };
}

test("takes a schema strictly that every strict mode takes as it is written", () => {
  const text =
    '{"type":"object","description":"An\\u0020order","properties":{"b":{"type":"string","description":"x"},' +
    '"10":{"type":"number","title":"T"},"2":{"type":["string","null"]},' +
    '"__proto__":{"type":"string","enum":["a","b"]},"c":{"type":"integer","const":1.0},' +
    '"list":{"type":"array","items":{"type":"object",' +
    '"properties":{"z":{"type":"boolean"},"a":{"type":"null"}},"required":["z","a"],"additionalProperties":false}}},' +
    '"required":["b","10","2","__proto__","c","list"],"additionalProperties":false}';
  assert.deepEqual(strictIn(text), ALL);
  assert.deepEqual(strictIn(object({})), ALL);
});

test("takes a schema strictly only if each object excludes further properties in so many words", () => {
  const open = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
  for (const each of [open, { ...open, additionalProperties: true }]) {
    assert.deepEqual(strictIn(each), ["google"]);
    assert.deepEqual(strictIn(object({ list: { type: "array", items: each } })), ["google"]);
    assert.deepEqual(strictIn(object({ inner: each })), ["google"]);
  }
});

test("openai: takes only schemas strictly that require all properties", () => {
  const properties = { a: { type: "string" }, b: { type: "string" } };
  assert.deepEqual(strictIn(object(properties, { required: ["a"] })), ["anthropic", "google"]);
  assert.deepEqual(strictIn(object({ inner: object(properties, { required: ["b"] }) })), ["anthropic", "google"]);
  assert.deepEqual(strictIn({ type: "object", additionalProperties: false }), ["anthropic", "google"]);
});

test("takes a schema strictly only if all its keywords are supported", () => {
  const cases: [property: object, strict: string[]][] = [
    [{ type: "number", minimum: 0, maximum: 9 }, ["openai", "google"]],
    [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 9, multipleOf: 3 }, ["openai", "google"]],
    [{}, ["google"]],
    [{ type: "array" }, ["google"]],
    [{ oneOf: [{ type: "string" }] }, ["google"]],
    [{ anyOf: [{ type: "string" }, { type: "null" }], description: "A." }, ALL],
    [{ type: "string", anyOf: [{ type: "string" }] }, ["google"]],
    [{ anyOf: [{ type: "string" }], minItems: 1 }, ["google"]],
    [{ type: "string", minimum: 1 }, ["google"]],
    [{ type: ["number", "null"], minimum: 1 }, ["openai", "google"]],
    [{ type: "string", additionalProperties: false }, ["google"]],
    [{ allOf: [{ type: "string" }] }, ["google"]],
    [{ type: "array", items: { type: "null" }, minItems: 1 }, ALL],
    [{ type: "array", items: { type: "null" }, minItems: 2 }, ["openai", "google"]],
    [{ type: "array", items: { type: "null" }, maxItems: 3 }, ["openai", "google"]],
    ...["minLength", "maxLength"].map((word): [object, string[]] => [{ type: "string", [word]: 2 }, ["google"]]),
    ...["default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"].map((word): [object, string[]] => [
      { type: "string", [word]: true },
      ["google"],
    ]),
  ];
  for (const [property, strict] of cases) {
    assert.deepEqual(strictIn(object({ a: property })), strict, JSON.stringify(property));
    assert.deepEqual(strictIn(object({ a: { type: "array", items: property } })), strict);
  }
  const $schema = "https://json-schema.org/draft/2020-12/schema";
  assert.deepEqual(strictIn(object({}, { $schema })), ["openai", "google"]);
});

test("takes a property with the name of a keyword for a property", () => {
  assert.deepEqual(strictIn(object({ minLength: { type: "string" }, items: { type: "string" } })), ALL);
});

test("openai: takes enums strictly up to the limits", () => {
  const numbers = (count: number) =>
    object({ a: { type: "integer", enum: Array.from({ length: count }, (_, i) => i) } });
  assert.ok(strictIn(numbers(1_000)).includes("openai"));
  assert.ok(!strictIn(numbers(1_001)).includes("openai"));
  const long = (count: number) => Array.from({ length: count }, (_, i) => `${i}`.padEnd(60, "x"));
  assert.ok(strictIn(object({ a: { type: "string", enum: long(250) } })).includes("openai"));
  assert.ok(!strictIn(object({ a: { type: "string", enum: long(251) } })).includes("openai"));
});

test("anthropic: takes optional properties and lists of types strictly, up to the limits of the grammar", () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `p${i}`);
  const optional = (count: number) =>
    object(Object.fromEntries(names(count).map((name) => [name, { type: "string" }])), { required: [] });
  assert.ok(strictIn(optional(10)).includes("anthropic"));
  assert.ok(!strictIn(optional(11)).includes("anthropic"));
  const unions = (count: number) =>
    object(Object.fromEntries(names(count).map((name) => [name, { type: ["string", "null"] }])));
  assert.ok(strictIn(unions(16)).includes("anthropic"));
  assert.ok(!strictIn(unions(17)).includes("anthropic"));
});

test("takes choices between objects strictly, where the first property tells them apart", () => {
  const kind = (name: string, more: object = {}) => object({ kind: { type: "string", const: name }, ...more });
  const $defs = { a: kind("a"), b: kind("b"), c: object({ n: { type: "string" } }) };
  const [a, b, c] = ["a", "b", "c"].map((name) => ({ $ref: `#/$defs/${name}` }));
  const cases: [anyOf: unknown[], strict: string[]][] = [
    [[kind("a"), kind("b", { x: { type: "null" } }), { type: "null" }], ALL],
    [[a, b, c], ALL],
    [
      [a, kind("a")],
      ["anthropic", "google"],
    ],
    [
      [c, object({ n: { type: "null" } })],
      ["anthropic", "google"],
    ],
    [[c, { type: "object", properties: {} }], ["google"]],
  ];
  for (const [anyOf, strict] of cases)
    assert.deepEqual(strictIn(object({ p: { anyOf } }, { $defs })), strict, JSON.stringify(anyOf));
  assert.deepEqual(strictIn(object({}, { anyOf: [{ type: "object" }] })), ["google"]);
});

test("takes references strictly that stand alone, and OpenAI alone those that lead back to themselves", () => {
  const text = { type: "string" };
  assert.deepEqual(strictIn(object({ p: { $ref: "#/$defs/t" } }, { $defs: { t: text } })), ALL);
  assert.deepEqual(strictIn(object({ p: { $ref: "#/definitions/t" } }, { definitions: { t: text } })), ALL);
  assert.deepEqual(strictIn(object({ p: { $ref: "#/$defs/t", description: "A." } }, { $defs: { t: text } })), []);
  assert.deepEqual(strictIn(object({ p: { $ref: "#/$defs/t" } }, { $defs: { t: { type: "object" } } })), ["google"]);
  const tree = { $defs: { tree: object({ of: { type: "array", items: { $ref: "#/$defs/tree" } } }) } };
  for (const each of [object({ p: { $ref: "#/$defs/tree" } }, tree), object({ p: { anyOf: [{ $ref: "#" }] } })])
    assert.deepEqual(strictIn(each), ["openai"]);
});
