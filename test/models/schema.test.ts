import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { parseJson, stringifyJson } from "../../src/json.ts";
import { compileSchema, dropAddedNulls } from "../../src/models/schema.ts";
import { anthropic } from "../../src/models/wire/anthropic.ts";
import { google } from "../../src/models/wire/google.ts";
import { openai } from "../../src/models/wire/openai.ts";

const DIALECTS = { openai: openai.schema, anthropic: anthropic.schema, google: google.schema };
type Format = keyof typeof DIALECTS;
const FORMATS = Object.keys(DIALECTS) as Format[];

const compile = (text: string, format: Format) => compileSchema(text, DIALECTS[format]);

function compiled(schema: unknown, format: Format): unknown {
  const { text } = compile(JSON.stringify(schema), format) ?? assert.fail("not expressible");
  return JSON.parse(text);
}

function object(properties: Record<string, unknown>, more: object = {}) {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false, ...more };
}

test("sends a schema that is strict already as it is written", () => {
  const text =
    '{"type":"object","description":"An\\u0020order","properties":{"b":{"type":"string","description":"x"},' +
    '"10":{"type":"number"},"2":{"type":["string","null"]},"__proto__":{"type":"string","enum":["a","b"]},' +
    '"list":{"type":"array","items":{"type":"object",' +
    '"properties":{"z":{"type":"boolean"},"a":{"type":"null"}},"required":["z","a"],"additionalProperties":false}}},' +
    '"required":["b","10","2","__proto__","list"],"additionalProperties":false}';
  for (const format of FORMATS) assert.deepEqual(compile(text, format), { text, strict: true });
});

test("keeps names, their order and the spelling of numbers", () => {
  const text =
    '{"type":"object","properties":{"9":{"type":"number","minimum":1.0,"maximum":123456789012345678901234567890},' +
    '"1":{"type":"integer","enum":[1.50,123456789012345678901234567891]},"__proto__":{"type":"number","const":2E+3}}}';
  for (const format of FORMATS) {
    const out = compile(text, format)?.text ?? "";
    const at = [
      '"9":',
      "1.0",
      "123456789012345678901234567890",
      '"1":',
      "1.50",
      "123456789012345678901234567891",
      '"__proto__":',
      "2E+3",
    ];
    const places = at.map((piece) => out.indexOf(piece));
    assert.ok(!places.includes(-1), `${format}: ${out}`);
  }
});

test("openai: makes optional properties required and nullable", () => {
  const schema = {
    type: "object",
    properties: {
      a: { type: "string" },
      b: { type: ["number", "null"] },
      c: { type: "string", enum: ["x", "y"] },
      d: { type: "integer", const: 4 },
      e: { type: "object", properties: { f: { type: "string" } } },
      g: { type: "array", items: { type: "string" } },
      must: { type: "string" },
    },
    required: ["must"],
  };
  assert.deepEqual(compiled(schema, "openai"), {
    type: "object",
    properties: {
      a: { type: ["string", "null"] },
      b: { type: ["number", "null"] },
      c: { type: ["string", "null"], enum: ["x", "y", null] },
      d: { type: ["integer", "null"], enum: [4, null] },
      e: {
        type: ["object", "null"],
        properties: { f: { type: ["string", "null"] } },
        required: ["f"],
        additionalProperties: false,
      },
      g: { type: ["array", "null"], items: { type: "string" } },
      must: { type: "string" },
    },
    required: ["a", "b", "c", "d", "e", "g", "must"],
    additionalProperties: false,
  });
});

test("openai: moves lengths into the description and keeps bounds", () => {
  const schema = object({
    a: { type: "string", description: "A name.", minLength: 2, maxLength: 5 },
    b: { type: "number", minimum: 0, maximum: 9 },
    c: { type: "array", items: { type: "null" }, minItems: 1, maxItems: 3 },
  });
  assert.deepEqual(
    compiled(schema, "openai"),
    object({
      a: { type: "string", description: "A name. Least number of characters: 2. Largest number of characters: 5." },
      b: { type: "number", minimum: 0, maximum: 9 },
      c: { type: "array", items: { type: "null" }, minItems: 1, maxItems: 3 },
    }),
  );
});

test("openai: sends a schema that strict mode cannot express unchanged, as a hint", () => {
  const big = Array.from({ length: 1_001 }, (_, i) => i);
  const long = Array.from({ length: 251 }, (_, i) => `${i}`.padEnd(60, "x"));
  for (const schema of [
    { type: "object" },
    { type: "object", properties: {} },
    { type: "object", properties: { a: { type: "string" } }, additionalProperties: true },
    object({ a: { type: "array", items: { type: "object" } } }),
    object({ a: { type: "integer", enum: big } }),
    object({ a: { type: "string", enum: long } }),
  ]) {
    const text = ` ${JSON.stringify(schema)}`;
    assert.deepEqual(compile(text, "openai"), { text, strict: false });
  }
  assert.equal(
    compile(JSON.stringify(object({})), "openai")?.strict,
    true,
    "an object without properties is closed if it says so",
  );
});

test("anthropic: moves bounds into the description and keeps constants and a minItems of 1", () => {
  const schema = object({
    a: { type: "string", minLength: 2 },
    b: { type: "number", minimum: 0.5, maximum: 9, const: 3 },
    c: { type: "array", items: { type: "null" }, minItems: 1, maxItems: 3 },
    d: { type: "array", items: { type: "null" }, minItems: 2 },
  });
  assert.deepEqual(
    compiled(schema, "anthropic"),
    object({
      a: { type: "string", description: "Least number of characters: 2." },
      b: { type: "number", const: 3, description: "Not less than 0.5. Not more than 9." },
      c: { type: "array", items: { type: "null" }, minItems: 1, description: "Largest number of items: 3." },
      d: { type: "array", items: { type: "null" }, description: "Least number of items: 2." },
    }),
  );
});

test("anthropic: keeps optional properties, up to the limits of the grammar", () => {
  const optional = (n: number) => ({
    type: "object",
    properties: Object.fromEntries(Array.from({ length: n }, (_, i) => [`p${i}`, { type: "string" }])),
  });
  assert.deepEqual(compiled(optional(2), "anthropic"), { ...optional(2), additionalProperties: false });
  assert.ok(compile(JSON.stringify(optional(10)), "anthropic"));
  assert.equal(compile(JSON.stringify(optional(11)), "anthropic"), undefined);
  const unions = (n: number) =>
    object(Object.fromEntries(Array.from({ length: n }, (_, i) => [`p${i}`, { type: ["string", "null"] }])));
  assert.ok(compile(JSON.stringify(unions(16)), "anthropic"));
  assert.equal(compile(JSON.stringify(unions(17)), "anthropic"), undefined);
  assert.equal(compile('{"type":"object","additionalProperties":true}', "anthropic"), undefined);
});

test("google: writes constants as enums, and enums of other values in words", () => {
  const schema = {
    type: "object",
    properties: {
      a: { type: "string", const: "x" },
      b: { type: "boolean", const: true },
      c: { type: ["string", "null"], enum: ["x", null] },
      d: { type: "string", enum: ["", "x"] },
      e: { type: "integer", enum: [1, 2], minimum: 1 },
      f: { type: "string", maxLength: 3 },
    },
    additionalProperties: true,
  };
  assert.deepEqual(compiled(schema, "google"), {
    type: "object",
    properties: {
      a: { type: "string", enum: ["x"] },
      b: { type: "boolean", description: "One of: true." },
      c: { type: ["string", "null"], description: 'One of: "x", null.' },
      d: { type: "string", description: 'One of: "", "x".' },
      e: { type: "integer", enum: [1, 2], minimum: 1 },
      f: { type: "string", description: "Largest number of characters: 3." },
    },
    additionalProperties: true,
  });
});

test("drops annotations except title and description", () => {
  const notes = { default: 1, examples: [1], deprecated: true, readOnly: true, writeOnly: true, $comment: "c" };
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...object({ a: { type: "integer", title: "T", ...notes } }),
    ...notes,
  };
  for (const format of FORMATS)
    assert.deepEqual(compiled(schema, format), object({ a: { type: "integer", title: "T" } }));
});

function dropped(answer: unknown, schema: unknown): unknown {
  return JSON.parse(
    stringifyJson(dropAddedNulls(parseJson(JSON.stringify(answer)), parseJson(JSON.stringify(schema)))),
  );
}

test("removes the nulls of optional properties from the answer, and no others", () => {
  const schema = {
    type: "object",
    properties: {
      optional: { type: "string" },
      nullable: { type: ["string", "null"] },
      choice: { type: ["string", "null"], enum: ["a"] },
      nothing: { type: "null", const: null },
      must: { type: "string" },
      inner: { type: "object", properties: { optional: { type: "string" } } },
      list: { type: "array", items: { type: "object", properties: { optional: { type: "string" } } } },
    },
    required: ["must"],
  };
  const answer = {
    optional: null,
    nullable: null,
    choice: null,
    nothing: null,
    must: null,
    unknown: null,
    inner: { optional: null, other: null },
    list: [{ optional: null }, null, { optional: "x" }],
  };
  assert.deepEqual(dropped(answer, schema), {
    nullable: null,
    nothing: null,
    must: null,
    unknown: null,
    inner: { other: null },
    list: [{}, null, { optional: "x" }],
  });
  assert.deepEqual(dropped([1], schema), [1]);
  assert.equal(dropped("text", schema), "text");
});

const NAMES = fc.constantFrom("a", "b", "1", "0", "__proto__", "constructor", "with space");

/** Schemas that the service accepts, as JSON text, so that names such as `__proto__` are ordinary. */
const { node: NODE } = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(
      '{"type":"string","minLength":1}',
      '{"type":["number","null"],"maximum":1.0}',
      '{"type":"integer","enum":[1,2.0,30000000000000000000001]}',
      '{"type":"boolean","const":true}',
      '{"type":"null","default":null}',
    ),
    tie("node").map((items) => `{"type":"array","items":${items},"maxItems":4}`),
    fc
      .tuple(
        fc.uniqueArray(fc.tuple(NAMES, tie("node")), { selector: ([name]) => name, minLength: 1, maxLength: 4 }),
        fc.boolean(),
      )
      .map(([properties, required]) => {
        const names = properties.map(([name]) => JSON.stringify(name));
        const list = properties.map(([name, node]) => `${JSON.stringify(name)}:${node}`);
        return `{"type":"object","properties":{${list}}${required ? `,"required":[${names}]` : ""}}`;
      }),
  ),
}));

function propertyNames(node: ReturnType<typeof parseJson>): string[] {
  if (node.kind !== "object") return [];
  return node.members.flatMap(([keyword, value]) => {
    if (keyword === "items") return propertyNames(value);
    if (keyword !== "properties" || value.kind !== "object") return [];
    return value.members.flatMap(([name, property]) => [name, ...propertyNames(property)]);
  });
}

test("keeps the order of names, and changes nothing when it compiles twice", () => {
  fc.assert(
    fc.property(NODE, fc.constantFrom(...FORMATS), (node, format) => {
      const text = `{"type":"object","properties":{"root":${node}},"required":["root"]}`;
      const once = compile(text, format);
      if (!once) return;
      assert.deepEqual(propertyNames(parseJson(once.text)), propertyNames(parseJson(text)));
      assert.deepEqual(compile(once.text, format), once);
    }),
  );
});
