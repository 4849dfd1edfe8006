import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, it } from "vitest";
import { Failure } from "../../../src/contract/failure.ts";
import { checkWhole } from "../../../src/engine/structured/check-whole.ts";
import { simplifySchema } from "../../../src/engine/structured/simplify-schema.ts";
import { createValidators } from "../../../src/engine/structured/validate.ts";

const PATH = "response_format.schema";

function simplify(schema: unknown): Record<string, unknown> {
  return JSON.parse(simplifySchema(JSON.stringify(schema)));
}

/** The schema of a property `p` after simplification. */
function simplified(p: unknown, $defs: Record<string, unknown> = {}): unknown {
  const root = simplify({ type: "object", properties: { p }, $defs });
  assert.ok(!("$defs" in root));
  return (root.properties as { p: unknown }).p;
}

function refusal(schema: unknown): Failure {
  try {
    checkWhole(simplifySchema(JSON.stringify(schema)), PATH);
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
    assert.equal(simplifySchema(text), text);
  });

  it("writes oneOf as anyOf where no value fits two of its schemas", () => {
    const object = (properties: object, required = Object.keys(properties)) => ({
      type: "object",
      properties,
      required,
    });
    const [a, b] = ["a", "b"].map((kind) => object({ kind: { ...STRING, const: kind }, n: STRING }));
    const note = { discriminator: { propertyName: "kind" }, description: "D." };
    assert.deepEqual(simplified({ oneOf: [a, b, NULL], ...note }), { anyOf: [a, b, NULL], description: "D." });
    assert.deepEqual(simplified({ oneOf: [a, { type: "integer" }, STRING] }), {
      ...a,
      type: ["object", "integer", "string"],
    });
    const listed = object({ n: STRING, kind: { ...STRING, enum: ["b", "c"] } });
    assert.deepEqual(simplified({ oneOf: [a, listed] }), { anyOf: [a, listed] });
    const one = object({ kind: { type: "number", const: 1 } });
    const others: unknown[][] = [
      [a, { ...b, required: ["n"] }],
      [a, b, listed],
      [a, object({ kind: STRING })],
      [a, object({ n: STRING })],
      [one, object({ kind: { type: "number", const: JSON.parse("1.0") } })],
      [{ type: "number" }, { type: "integer" }],
      [
        { ...STRING, nullable: true },
        { type: "integer", nullable: true },
      ],
      [a, b, { ...NULL, type: ["null", "object"] }],
      [a, {}],
    ];
    for (const oneOf of others) assert.deepEqual(simplified({ oneOf }), { oneOf });
    const beside = { oneOf: [a, b], minProperties: 1 };
    assert.deepEqual(simplified(beside), beside);
  });

  it("leaves alternatives that no single schema can say", () => {
    const object = (properties: object) => ({ type: "object", properties });
    const cases: unknown[][] = [
      [object({}), object({ a: STRING })],
      [{ ...STRING, enum: ["a"] }, { type: "integer" }],
      [{ ...STRING, enum: ["a"] }, STRING],
      [
        { ...STRING, const: "a" },
        { ...STRING, const: "abc", maxLength: 2 },
      ],
      [{ type: "integer", minimum: 1 }, { type: "number" }],
      [{ ...STRING, minimum: 3 }, { type: "integer" }],
      [{ ...STRING, exclusiveMinimum: 3 }, { type: "integer" }],
      [{ type: "integer", multipleOf: 3, minLength: 1 }, STRING],
      [{ type: "integer", pattern: "^a" }, STRING],
      [{}, NULL],
      [{ ...STRING, minProperties: 1 }, object({})],
      [{ ...object({}), anyOf: [object({ a: STRING })] }, NULL],
      [{ ...STRING, not: { maxLength: 1 } }, NULL],
    ];
    for (const anyOf of cases) assert.deepEqual(simplified({ anyOf }), { anyOf });
    for (const other of [{ allOf: [STRING, { minLength: 2 }] }, { oneOf: [STRING, { minLength: 2 }] }])
      assert.deepEqual(simplified(other), other);
    const oneOf = [{ $ref: "#/$defs/S" }, { minLength: 2 }];
    assert.deepEqual(simplified({ oneOf }, { S: STRING }), { oneOf: [STRING, { minLength: 2 }] });
  });

  it("leaves references beside keywords that could change what they mean", () => {
    for (const more of [{ minLength: 2 }, { pattern: "^a" }, { not: {} }]) {
      const schema = { type: "object", properties: { p: { $ref: "#/$defs/S", ...more } }, $defs: { S: STRING } };
      assert.deepEqual(simplify(schema), schema);
    }
  });

  it("leaves references that lead back to themselves or to nothing, but for one at the root", () => {
    const Tree = { type: "object", properties: { more: { type: "array", items: { $ref: "#/$defs/Tree" } } } };
    const $defs = { Tree, Loop: { $ref: "#/$defs/Loop" } };
    const pointers = [
      ...["#", "#/$defs/Tree", "#/$defs/Loop", "#/$defs/None", "#/%", "#Anchor", "https://example.com/a.json", 7],
    ];
    for (const $ref of pointers) {
      const schema = { type: "object", properties: { p: { $ref } }, $defs };
      assert.deepEqual(simplify(schema), schema);
    }
    const root = { $ref: "#/$defs/Tree", description: "All.", $defs };
    assert.deepEqual(simplify(root), { ...Tree, description: "All.", $defs });
    const nowhere = { $ref: "#/$defs/None", $defs };
    assert.deepEqual(simplify(nowhere), nowhere);
  });

  it("is bounded, whatever references multiply", () => {
    const levels = Array.from({ length: 60 }, (_, i) => i);
    const twice = (i: number) => ({ $ref: `#/$defs/d${i + 1}` });
    const wide = levels.map((i) => [`d${i}`, { type: "object", properties: { a: twice(i), b: twice(i) } }]);
    const empty = levels.map((i) => [`d${i}`, { anyOf: [twice(i), twice(i)] }]);
    const using = (defs: (string | object)[][]) => {
      const $defs = { ...Object.fromEntries(defs), d60: STRING };
      return { type: "object", properties: { p: { $ref: "#/$defs/d0" } }, $defs };
    };
    assert.deepEqual(simplify(using(wide)), using(wide));
    checkWhole(JSON.stringify(using(wide)), PATH);
    refusal(using(empty));
    const chain = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }]));
    refusal({ type: "object", properties: { p: { $ref: "#/$defs/d0" } }, $defs: { ...chain, d900: STRING } });
    const many = Object.fromEntries(levels.map((i) => [`p${i}`, { $ref: "#/$defs/S" }]));
    const S = { ...STRING, description: "x".repeat(1_000) };
    const schema = { type: "object", properties: many, $defs: { S } };
    assert.deepEqual(simplify(schema), schema);
    checkWhole(JSON.stringify(schema), PATH);
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
      const text = simplifySchema(JSON.stringify(schema));
      checkWhole(text, PATH);
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
      fc.property(documents, fc.gen(), ({ root, $defs }, draw) => {
        const text = JSON.stringify({ ...root, $defs });
        const result = simplifySchema(text);
        try {
          checkWhole(result, PATH);
        } catch {
          return;
        }
        taken++;
        const original = ajv.compile(JSON.parse(text));
        const validate = validators.get(result);
        for (let i = 0; i < 20; i++) {
          const value = sample(root, { root, $defs }, draw);
          if (typeof value !== "object" || value === null || Array.isArray(value)) continue;
          const answer = JSON.stringify(value);
          assert.equal(validate(answer).ok, original(JSON.parse(answer)), `${text}\n${result}\n${answer}`);
        }
      }),
      { numRuns: 200 },
    );
    assert.ok(taken > 100, `Only ${taken} schemas were taken.`);
  });
});

interface Fixture {
  schema: object;
  valid: unknown[];
  invalid: unknown[];
}

type Node = Record<string, unknown>;
type Definitions = Record<string, Node>;

const NAMES = ["d0", "d1", "d2", "d3"];
const WORDS = ["a", "bb", "ccc", ""];

/** Schemas that refer to definitions, and to the root. */
const { node, object } = fc.letrec<{ node: Node; object: Node }>((tie) => {
  const reference = fc.constantFrom(...NAMES.map((name) => `#/$defs/${name}`), "#").map(($ref) => ({ $ref }));
  const list = fc.array(tie("node"), { minLength: 1, maxLength: 3 });
  return {
    node: fc.oneof(
      { depthSize: "small", maxDepth: 3 },
      fc.record(
        { type: fc.constant("string"), minLength: fc.nat(2), maxLength: fc.nat(3) },
        { requiredKeys: ["type"] },
      ),
      fc.record(
        {
          type: fc.constantFrom("integer", "number"),
          minimum: fc.integer({ min: -2, max: 2 }),
          multipleOf: fc.constantFrom(0.5, 2),
        },
        { requiredKeys: ["type"] },
      ),
      fc.constantFrom<Node>({ type: "boolean" }, NULL, { type: ["string", "null"] }, {}),
      fc.record({ enum: fc.uniqueArray(fc.constantFrom(...WORDS, 1, 1.5, null, true), { minLength: 1 }) }),
      fc.record({ const: fc.constantFrom(...WORDS, 0, null, false) }),
      reference,
      reference.map((node) => ({ ...node, description: "A.", default: 1 })),
      reference.map((node) => ({ allOf: [node] })),
      tie("node").map((node) => ({ anyOf: [node, NULL], title: "T" })),
      list.map((anyOf) => ({ anyOf })),
      list.map((oneOf) => ({ oneOf })),
      fc.record(
        { type: fc.constant("array"), items: tie("node"), maxItems: fc.nat(2), uniqueItems: fc.boolean() },
        { requiredKeys: ["type", "items"] },
      ),
      tie("object"),
      // Objects that name their kind, or nearly.
      fc
        .record({
          keyword: fc.constantFrom("anyOf", "oneOf"),
          branches: fc.array(tie("object"), { minLength: 2, maxLength: 3 }),
          kinds: fc.array(fc.constantFrom<unknown[]>(...WORDS.map((word) => [word]), ["a", 1], [null]), {
            minLength: 3,
            maxLength: 3,
          }),
          isRequired: fc.boolean(),
        })
        .map(({ keyword, branches, kinds, isRequired }) => ({
          [keyword]: branches.map((branch, i) => ({
            ...branch,
            properties: { ...Object(branch.properties), a: { enum: kinds[i] } },
            ...(isRequired ? { required: ["a"] } : {}),
          })),
        })),
    ),
    object: fc
      .record({
        properties: fc.record({ a: tie("node"), b: tie("node") }),
        required: fc.subarray(["a", "b"]),
        additionalProperties: fc.oneof(fc.constantFrom(true, false, {}), tie("node")),
        minProperties: fc.option(fc.constantFrom(1), { nil: undefined, freq: 8 }),
      })
      .map((members): Node => JSON.parse(JSON.stringify({ type: "object", ...members }))),
  };
});
const documents: fc.Arbitrary<{ root: Node; $defs: Definitions }> = fc.record({
  root: object,
  $defs: fc.record(Object.fromEntries(NAMES.map((name) => [name, node]))),
});

/** A value that fits a schema, or nearly. */
function sample(
  schema: Node,
  document: { root: Node; $defs: Definitions },
  draw: fc.GeneratorValue,
  depth = 0,
): unknown {
  const among = (values: readonly unknown[]) => draw(fc.constantFrom, ...values);
  if (depth > 12 || among([1, 2, 3, 4, 5, 6, 7, 8]) === 1)
    return among([null, "a", "bbbb", 0, -5, 1.5, true, [], {}, ["a"], { a: 1 }]);
  const inner = (node: Node) => sample(node, document, draw, depth + 1);
  const {
    $ref,
    anyOf,
    oneOf,
    allOf,
    enum: values,
    properties,
    items,
    additionalProperties: more,
  } = schema as {
    [name: string]: unknown;
    anyOf?: Node[];
    oneOf?: Node[];
    allOf?: Node[];
    enum?: unknown[];
    properties?: Definitions;
    items?: Node;
  };
  if (typeof $ref === "string") return inner(document.$defs[$ref.slice("#/$defs/".length)] ?? document.root);
  const branches = anyOf ?? oneOf ?? allOf;
  if (branches) return inner(among(branches) as Node);
  if (values) return among(values);
  if ("const" in schema) return schema.const;
  if (properties) {
    const members = Object.entries(properties).filter(() => among([true, true, true, false]));
    if (typeof more === "object" && among([true, false])) members.push(["c", more as Node]);
    return Object.fromEntries(members.map(([name, node]) => [name, inner(node)]));
  }
  if (items) return Array.from({ length: draw(fc.nat, 3) }, () => inner(items));
  const type = among([schema.type].flat());
  if (type === "string") return among(WORDS);
  if (type === "boolean") return true;
  return type === "null" ? null : among([-3, 0, 1, 2.5, 7]);
}
