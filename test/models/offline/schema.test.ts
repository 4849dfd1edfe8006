import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { test } from "vitest";
import { parseJson, toValue } from "../../../src/contract/json.ts";
import { codePoint } from "../../helpers/code-point.ts";
import { ask, schemaFormat } from "./ask.ts";

const ajv = new Ajv2020({ strict: false, ownProperties: true });

async function assertValid(schema: object, text: string): Promise<void> {
  const answer = await ask(text, { format: schemaFormat(schema) });
  const valid = ajv.validate(schema, toValue(parseJson(answer)));
  assert.ok(valid, `${ajv.errorsText()} in ${answer} for ${JSON.stringify(schema)}`);
}

const bounds = (low: string, high: string, values: fc.Arbitrary<number>) =>
  fc.tuple(fc.option(values, { nil: undefined }), fc.option(values, { nil: undefined })).map(([a, b]) => ({
    ...(a === undefined ? {} : { [low]: b === undefined ? a : Math.min(a, b) }),
    ...(b === undefined ? {} : { [high]: a === undefined ? b : Math.max(a, b) }),
  }));
const names = fc.oneof(
  fc.constantFrom(
    "email",
    "date",
    "due_date",
    "total",
    "invoiceNumber",
    "name",
    "company",
    "summary",
    "answer",
    "isPaid",
    "items",
    "tags",
  ),
  fc.constantFrom("constructor", "toString", "1", "0", "", "a b", "ключ", '"', "length"),
  fc.string({ maxLength: 8, unit: "grapheme" }),
);
const described = fc.record(
  { description: fc.constantFrom("", "The grand total", "as DD/MM/YYYY", "e-mail of the customer") },
  { requiredKeys: [] },
);
const nullable = (type: string) => fc.constantFrom(type, [type, "null"], ["null", type]);
const stringSchema = fc.tuple(described, nullable("string"), bounds("minLength", "maxLength", fc.nat(40)));
const numberSchema = fc.tuple(
  described,
  nullable("number"),
  bounds("minimum", "maximum", fc.double({ noNaN: true, noDefaultInfinity: true })),
);
const integerSchema = fc.tuple(
  described,
  nullable("integer"),
  bounds("minimum", "maximum", fc.integer({ min: -1000, max: 1000 })),
);
const plain = fc
  .oneof(
    stringSchema,
    numberSchema,
    integerSchema,
    fc.tuple(described, nullable("boolean"), fc.constant({})),
    fc.tuple(described, fc.constantFrom("null", ["string", "integer"], ["boolean", "number", "null"]), fc.constant({})),
  )
  .map(([note, type, limits]) => ({ ...note, type, ...limits }));
const scalars = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
);
const typeOf = (value: unknown) => (value === null ? "null" : typeof value);
const fixed = fc.oneof(
  fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 4 }).map((list) => ({ type: "string", enum: list })),
  fc
    .uniqueArray(fc.string(), { minLength: 1, maxLength: 4 })
    .map((list) => ({ type: ["string", "null"], enum: [...list, null] })),
  fc.uniqueArray(fc.integer(), { minLength: 1, maxLength: 4 }).map((list) => ({ type: "integer", enum: list })),
  fc.constantFrom(
    { type: "string", enum: ["abcd", "ab"], maxLength: 3 },
    { type: "integer", enum: [1, 9], minimum: 5 },
  ),
  scalars.map((value) => ({ type: typeOf(value), const: value })),
);
const references = fc
  .constantFrom("tree", "chain", "word")
  .map((name) => `#/$defs/${name}`)
  .chain(($ref) => fc.constantFrom<object>({ $ref }, { allOf: [{ $ref }], description: "A." }));
const $defs = {
  tree: { type: "object", properties: { of: { type: "array", items: { $ref: "#/$defs/tree" } } }, required: ["of"] },
  chain: {
    type: "object",
    properties: { next: { anyOf: [{ $ref: "#/$defs/chain" }, { type: "null" }] }, root: { $ref: "#" } },
    required: ["next"],
  },
  word: { type: "string", minLength: 3 },
};
const multiples = fc.constantFrom(0.01, 0.5, 3).map((multipleOf) => ({ type: "number", multipleOf }));
const exclusive = fc.constantFrom(
  { type: "number", exclusiveMinimum: 0 },
  { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.001 },
  { type: "number", minimum: 0, exclusiveMaximum: 5, multipleOf: 0.5 },
  { type: "integer", exclusiveMinimum: 0, maximum: 9 },
  { type: "integer", exclusiveMinimum: -2, exclusiveMaximum: 0 },
);
const withKind = (schema: object, kind: number) => {
  const { properties = {}, required = [] } = schema as { properties?: object; required?: string[] };
  return { ...schema, properties: { ...properties, kind: { const: kind } }, required: [...required, "kind"] };
};
const { node } = fc.letrec<{ node: object; object: object; array: object; choice: object }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    ...[plain, fixed, tie("object"), tie("array"), tie("choice"), references, multiples, exclusive],
  ),
  choice: fc
    .tuple(fc.constantFrom("anyOf", "oneOf"), fc.array(tie("object"), { minLength: 1, maxLength: 3 }), fc.boolean())
    .map(([keyword, branches, isNullable]) => ({
      [keyword]: [...branches.map((branch, i) => withKind(branch, i)), ...(isNullable ? [{ type: "null" }] : [])],
    })),
  object: fc
    .uniqueArray(fc.tuple(names, tie("node"), fc.boolean()), { maxLength: 5, selector: ([name]) => name })
    .chain((members) =>
      fc.constantFrom(true, false).map((additionalProperties) => ({
        type: "object",
        properties: Object.fromEntries(members.map(([name, schema]) => [name, schema])),
        required: members.filter(([, , must]) => must).map(([name]) => name),
        additionalProperties,
      })),
    ),
  array: fc
    .tuple(tie("node"), bounds("minItems", "maxItems", fc.nat(4)))
    .map(([items, limits]) => ({ type: "array", items, ...limits })),
}));
const root = fc
  .uniqueArray(fc.tuple(names, node, fc.boolean()), { maxLength: 6, selector: ([name]) => name })
  .map((members) => ({
    type: "object",
    properties: Object.fromEntries(members.map(([name, schema]) => [name, schema])),
    required: members.filter(([, , must]) => must).map(([name]) => name),
    additionalProperties: false,
    $defs,
  }));
const facts = fc.constantFrom(
  "Total: $1,234.50",
  "jane@acme.example",
  "Due date: 14.03.2026",
  "Jane Doe paid.",
  "- one\n- two",
  "a | b\n1 | 2",
  "2 x Pen 1.50",
  "Paid: yes",
  "I hate it.",
  "Extract this:",
  "What is 2 + 2?",
);
const texts = fc
  .array(fc.oneof(facts, fc.string({ unit: "grapheme" }), fc.string({ unit: codePoint })), { maxLength: 8 })
  .map((parts) => parts.join("\n"));

test("gives a valid answer for any supported schema and any text", async () => {
  await fc.assert(fc.asyncProperty(root, texts, assertValid), {
    numRuns: 200,
  });
});

test("fills a member whose name V8 reads as another one", async () => {
  const string = '{"type":"string"}';
  const schema = `{"type":"object","properties":{"h":${string},"\\"":${string}},"required":["\\""]}`;
  // After this text, JSON.parse reads the name `"` as a backslash (nodejs/node#63785).
  JSON.parse('{"h":{},"\\\\":{}}');
  assert.equal(await ask("", { format: { type: "schema", schema } }), '{"\\"":""}');
});
