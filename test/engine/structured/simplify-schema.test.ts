import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, it } from "vitest";
import { Failure } from "../../../src/contract/failure.ts";
import { checkSchema } from "../../../src/engine/structured/check-schema.ts";
import { simplifySchema } from "../../../src/engine/structured/simplify-schema.ts";
import { createValidators } from "../../../src/engine/structured/validate.ts";

const RULES = { path: "response_format.schema", nullableObjects: true, moreKeywords: false };

function simplify(schema: unknown): Record<string, unknown> {
  return JSON.parse(simplifySchema(JSON.stringify(schema), RULES.path));
}

/** The schema of a property `p` after simplification. */
function simplified(p: unknown, $defs: Record<string, unknown> = {}): unknown {
  const root = simplify({ type: "object", properties: { p }, $defs });
  assert.ok(!("$defs" in root));
  return (root.properties as { p: unknown }).p;
}

function refusal(schema: unknown): Failure {
  try {
    checkSchema(simplifySchema(JSON.stringify(schema), RULES.path), RULES);
  } catch (error) {
    assert.ok(error instanceof Failure && error.kind === "invalid_response_schema");
    return error;
  }
  return assert.fail("The schema was accepted.");
}

const STRING = { type: "string" };
const NULL = { type: "null" };

describe("simplifySchema", () => {
  it("puts the schema in place of a reference and keeps both descriptions", () => {
    const Address = { type: "object", title: "Address", description: "Postal.", properties: { city: STRING } };
    const home = { $ref: "#/$defs/Address", description: "Home.", default: null };
    assert.deepEqual(simplified(home, { Address }), { ...Address, description: "Home.\nPostal.", default: null });
    assert.deepEqual(simplified({ allOf: [{ $ref: "#/$defs/Address" }], title: "T" }, { Address }), {
      ...Address,
      title: "T",
    });
    const { properties } = simplify({
      $ref: "#/definitions/R",
      $schema: "http://json-schema.org/draft-07/schema#",
      definitions: {
        R: { type: "object", properties: { "a/b": STRING, c: { $ref: "#/definitions/R/properties/a~1b" } } },
      },
    });
    assert.deepEqual(properties, { "a/b": STRING, c: STRING });
  });

  it("writes alternatives with different types as one schema", () => {
    const cases: [anyOf: unknown[], expected: unknown][] = [
      [[{ ...STRING, maxLength: 3 }, NULL], { type: ["string", "null"], maxLength: 3 }],
      [[{ enum: ["a", "b"], type: "string" }, NULL], { type: ["string", "null"], enum: ["a", "b", null] }],
      [[{ const: "a" }, NULL], { type: ["string", "null"], enum: ["a", null] }],
      [[{ type: "object", properties: {} }, NULL], { type: ["object", "null"], properties: {} }],
      [[{ type: "array", items: STRING }, NULL], { type: ["array", "null"], items: STRING }],
      [
        [{ type: "integer", minimum: 0 }, { ...STRING, minLength: 1 }, { type: "boolean" }],
        { type: ["integer", "string", "boolean"], minimum: 0, minLength: 1 },
      ],
      [[{ type: "integer" }, { type: "number" }], { type: ["integer", "number"] }],
      [[{ anyOf: [STRING, { type: "integer" }] }, NULL], { type: ["string", "integer", "null"] }],
      [[STRING], STRING],
      // A union of literals, as zod and TypeBox write it.
      [
        [
          { const: "a", type: "string", description: "A" },
          { const: "b", type: "string", description: "B" },
        ],
        { type: "string", description: "A\nB", enum: ["a", "b"] },
      ],
      [
        [{ const: 1, type: "number" }, { const: 2.5, type: "number" }, { enum: ["x"] }, NULL],
        { type: ["number", "string", "null"], enum: [1, 2.5, "x", null] },
      ],
      [[{ enum: ["a", "b"] }, { enum: ["b", "c"] }], { type: "string", enum: ["a", "b", "c"] }],
    ];
    for (const [anyOf, expected] of cases) assert.deepEqual(simplified({ anyOf }), expected, JSON.stringify(anyOf));
  });

  it("declares the types of listed values", () => {
    assert.deepEqual(simplified({ enum: ["a", 1, 1.5, null] }), {
      type: ["string", "number", "null"],
      enum: ["a", 1, 1.5, null],
    });
    assert.deepEqual(simplified({ const: 7 }), { type: "integer", const: 7 });
    assert.deepEqual(simplified({ type: "object", additionalProperties: {} }), {
      type: "object",
      additionalProperties: true,
    });
  });

  it("leaves a schema of the table as it is written", () => {
    const text = '{ "type":"object","properties":{"10":{"type":"number","minimum":1.0},"$ref":{"type":"string"}} }';
    assert.equal(simplifySchema(text, RULES.path), text);
  });

  it("leaves alternatives that no single schema can say, and their place is named", () => {
    const cases: [p: unknown, keyword: string][] = [
      [
        {
          anyOf: [
            { type: "object", properties: {} },
            { type: "object", properties: { a: STRING } },
          ],
        },
        "anyOf",
      ],
      [{ anyOf: [{ ...STRING, enum: ["a"] }, { type: "integer" }] }, "anyOf"],
      [{ anyOf: [{ ...STRING, enum: ["a"] }, STRING] }, "anyOf"],
      [
        {
          anyOf: [
            { ...STRING, const: "a" },
            { ...STRING, const: "abc", maxLength: 2 },
          ],
        },
        "anyOf",
      ],
      [{ anyOf: [{ type: "integer", minimum: 1 }, { type: "number" }] }, "anyOf"],
      [{ anyOf: [{ ...STRING, minimum: 3 }, { type: "integer" }] }, "anyOf"],
      [{ anyOf: [{ ...STRING, exclusiveMinimum: 3 }, { type: "integer" }] }, "anyOf"],
      [{ anyOf: [{ type: "integer", pattern: "^a" }, STRING] }, "anyOf"],
      [{ anyOf: [{}, NULL] }, "anyOf"],
      [{ anyOf: [{ ...STRING, format: "date" }, NULL] }, "format"],
      [{ $ref: "#/$defs/S", minLength: 2 }, "$ref"],
      [{ $ref: "#/$defs/S", pattern: "^a" }, "$ref"],
      [{ $ref: "#/$defs/S", toString: 2 }, "toString"],
      [{ allOf: [STRING, { minLength: 2 }] }, "allOf"],
      [{ oneOf: [STRING, NULL] }, "oneOf"],
    ];
    for (const [p, keyword] of cases) {
      const { field, message } = refusal({ type: "object", properties: { p }, $defs: { S: STRING } });
      assert.equal(field, "response_format.schema.properties.p", JSON.stringify(p));
      assert.ok(message.includes(`"${keyword}"`), message);
    }
  });

  it("refuses references to themselves and to nothing", () => {
    const cases: [$ref: unknown, message: RegExp][] = [
      ["#", /leads back to itself/],
      ["#/$defs/Tree", /leads back to itself/],
      ["#/$defs/Loop", /leads back to itself/],
      ["#/$defs/None", /must name a schema/],
      ["#/%", /must name a schema/],
      ["#Anchor", /must name a schema/],
      ["https://example.com/a.json", /must name a schema/],
      [7, /"\$ref" is not supported/],
    ];
    const $defs = {
      Tree: { type: "object", properties: { more: { type: "array", items: { $ref: "#/$defs/Tree" } } } },
      Loop: { $ref: "#/$defs/Loop" },
    };
    for (const [$ref, message] of cases) {
      const failure = refusal({ type: "object", properties: { p: { $ref } }, $defs });
      assert.match(failure.message, message);
      assert.ok(failure.field?.startsWith("response_format.schema.properties.p"), failure.field);
    }
  });

  it("is bounded, whatever references multiply", () => {
    const levels = Array.from({ length: 60 }, (_, i) => i);
    const twice = (i: number) => ({ $ref: `#/$defs/d${i + 1}` });
    const wide = levels.map((i) => [`d${i}`, { type: "object", properties: { a: twice(i), b: twice(i) } }]);
    const empty = levels.map((i) => [`d${i}`, { anyOf: [twice(i), twice(i)] }]);
    for (const defs of [wide, empty]) {
      const $defs = { ...Object.fromEntries(defs), d60: STRING };
      refusal({ type: "object", properties: { p: { $ref: "#/$defs/d0" } }, $defs });
    }
    const chain = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }]));
    const failure = refusal({ type: "object", properties: { p: { $ref: "#/$defs/d0" } }, $defs: chain });
    assert.match(failure.message, /more than 100 levels/);
    const many = Object.fromEntries(levels.map((i) => [`p${i}`, { $ref: "#/$defs/S" }]));
    const S = { ...STRING, description: "x".repeat(1_000) };
    assert.match(refusal({ type: "object", properties: many, $defs: { S } }).message, /32 KiB/);
  });

  it("takes a time that grows with the length of the schema, whatever references lead to", () => {
    const list = Array.from({ length: 6_000 }, (_, i) => `n${i}`);
    const targets = [
      { ...STRING, enum: list },
      { ...STRING, ...Object.fromEntries(list.map((name) => [name, 1])) },
    ];
    const uses = [{ $ref: "#/$defs/S" }, { $ref: "#/$defs/S", enum: [] }, { anyOf: [{ $ref: "#/$defs/S" }, NULL] }];
    for (const S of targets) {
      for (const use of uses) {
        const properties = Object.fromEntries(list.map((name) => [name, use]));
        const before = process.threadCpuUsage();
        assert.match(refusal({ type: "object", properties, $defs: { S } }).message, /32 KiB/);
        const { user, system } = process.threadCpuUsage(before);
        assert.ok(user + system < 3_000_000, `${user + system} µs`);
      }
    }
  });

  it("takes a time that grows with the length of the schema, also where literals have descriptions", () => {
    const description = (i: number) => `${i} ${"x".repeat(60)}`;
    const anyOf = Array.from({ length: 9_000 }, (_, i) => ({ ...STRING, const: `${i}`, description: description(i) }));
    const before = process.threadCpuUsage();
    assert.match(refusal({ type: "object", properties: { p: { anyOf } } }).message, /32 KiB/);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 3_000_000, `${user + system} µs`);
  });

  it("takes the schemas that Pydantic and zod write", () => {
    const fixtures = JSON.parse(readFileSync(new URL("library-schemas.json", import.meta.url), "utf8"));
    const validators = createValidators();
    for (const [name, { schema, valid, invalid }] of Object.entries<Fixture>(fixtures)) {
      const text = simplifySchema(JSON.stringify(schema), RULES.path);
      checkSchema(text, RULES);
      const validate = validators.get(text);
      for (const value of valid) assert.ok(validate(JSON.stringify(value)).ok, `${name} ${JSON.stringify(value)}`);
      for (const value of invalid) assert.ok(!validate(JSON.stringify(value)).ok, `${name} ${JSON.stringify(value)}`);
    }
  });

  it("accepts exactly the values that the schema accepts", () => {
    const validators = createValidators();
    const ajv = new Ajv2020({ strict: false, meta: false, validateSchema: false });
    let taken = 0;
    fc.assert(
      fc.property(documents(), fc.gen(), ({ root, $defs }, draw) => {
        const text = JSON.stringify({ ...root, $defs });
        const result = simplifySchema(text, RULES.path);
        try {
          checkSchema(result, RULES);
        } catch {
          return;
        }
        taken++;
        const original = ajv.compile(JSON.parse(text));
        const validate = validators.get(result);
        for (let i = 0; i < 20; i++) {
          const value = sample(root, $defs, draw);
          if (typeof value !== "object" || value === null || Array.isArray(value)) continue;
          const answer = JSON.stringify(value);
          assert.equal(validate(answer).ok, original(JSON.parse(answer)), `${text}\n${result}\n${answer}`);
        }
      }),
      { numRuns: 200 },
    );
    assert.ok(taken > 60, `Only ${taken} schemas were taken.`);
  });
});

interface Fixture {
  schema: object;
  valid: unknown[];
  invalid: unknown[];
}

type Node = Record<string, unknown>;
type Definitions = Record<string, Node>;

const MAX_DEFINITIONS = 4;
const WORDS = ["a", "bb", "ccc", ""];

/** Documents whose definitions refer to later ones only. */
function documents(): fc.Arbitrary<{ root: Node; $defs: Definitions }> {
  const definitions = Array.from({ length: MAX_DEFINITIONS }, (_, i) => nodes(i + 1, 2));
  return fc.record({ root: objects(0, 2), defs: fc.tuple(...definitions) }).map(({ root, defs }) => ({
    root,
    $defs: Object.fromEntries(defs.map((schema, i) => [`d${i}`, schema])),
  }));
}

/** @param from number of the first definition that may be referred to */
function nodes(from: number, depth: number): fc.Arbitrary<Node> {
  const leaves = [
    fc.record({ type: fc.constant("string"), minLength: fc.nat(2), maxLength: fc.nat(3) }, { requiredKeys: ["type"] }),
    fc.record(
      { type: fc.constantFrom("integer", "number"), minimum: fc.integer({ min: -2, max: 2 }) },
      { requiredKeys: ["type"] },
    ),
    fc.constantFrom<Node>({ type: "boolean" }, NULL, { type: ["string", "null"] }),
    fc.record({ enum: fc.uniqueArray(fc.constantFrom(...WORDS, 1, 1.5, null, true), { minLength: 1 }) }),
    fc.record({ const: fc.constantFrom(...WORDS, 0, null, false) }),
  ];
  const references = Array.from({ length: MAX_DEFINITIONS - from }, (_, i) => ({ $ref: `#/$defs/d${from + i}` }));
  const reference = references.length > 0 ? [fc.constantFrom<Node>(...references)] : [];
  const described = reference.map((one) => one.map((node) => ({ ...node, description: "A.", default: 1 })));
  if (depth === 0) return fc.oneof(...leaves, ...reference, ...described);
  const inner = nodes(from, depth - 1);
  return fc.oneof(
    ...leaves,
    ...reference,
    ...described,
    ...reference.map((one) => one.map((node) => ({ allOf: [node] }))),
    inner.map((node) => ({ anyOf: [node, NULL], title: "T" })),
    fc.array(inner, { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.record({ type: fc.constant("array"), items: inner, maxItems: fc.nat(2) }, { requiredKeys: ["type", "items"] }),
    objects(from, depth - 1),
  );
}

function objects(from: number, depth: number): fc.Arbitrary<Node> {
  const child = depth === 0 ? nodes(from, 0) : nodes(from, depth - 1);
  return fc.record({ a: child, b: child, isClosed: fc.boolean(), required: fc.subarray(["a", "b"]) }).map(
    ({ a, b, isClosed, required }): Node => ({
      type: "object",
      properties: { a, b },
      required,
      ...(isClosed ? { additionalProperties: false } : {}),
    }),
  );
}

/** A value that fits a schema, or nearly. */
function sample(schema: Node, $defs: Definitions, draw: fc.GeneratorValue): unknown {
  const among = (values: readonly unknown[]) => draw(fc.constantFrom, ...values);
  if (among([1, 2, 3, 4, 5, 6, 7, 8]) === 1)
    return among([null, "a", "bbbb", 0, -5, 1.5, true, [], {}, ["a"], { a: 1 }]);
  const {
    $ref,
    anyOf,
    allOf,
    enum: values,
    properties,
    items,
  } = schema as {
    [name: string]: unknown;
    anyOf?: Node[];
    allOf?: Node[];
    enum?: unknown[];
    properties?: Definitions;
    items?: Node;
  };
  if (typeof $ref === "string") return sample($defs[$ref.slice("#/$defs/".length)] ?? {}, $defs, draw);
  const branches = anyOf ?? allOf;
  if (branches) return sample(among(branches) as Node, $defs, draw);
  if (values) return among(values);
  if ("const" in schema) return schema.const;
  if (properties) {
    const members = Object.entries(properties).filter(() => among([true, true, true, false]));
    return Object.fromEntries(members.map(([name, node]) => [name, sample(node, $defs, draw)]));
  }
  if (items) return Array.from({ length: draw(fc.nat, 3) }, () => sample(items, $defs, draw));
  const type = among([schema.type].flat());
  if (type === "string") return among(WORDS);
  if (type === "boolean") return true;
  return type === "null" ? null : among([-3, 0, 1, 2.5, 7]);
}
