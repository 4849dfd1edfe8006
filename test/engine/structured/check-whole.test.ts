import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, it } from "vitest";
import { z } from "zod";
import { Failure } from "../../../src/contract/failure.ts";
import { checkWhole } from "../../../src/engine/structured/check-whole.ts";
import { createValidators } from "../../../src/engine/structured/validate.ts";

const PATH = "response_format.schema";
const STRING = { type: "string" };
const REF = { $ref: "#/$defs/d" };

/** A root whose property `p` is the given schema. */
const withProperty = (p: unknown, d: unknown = STRING) => ({ type: "object", properties: { p }, $defs: { d } });
const accepts = (schema: unknown) => checkWhole(JSON.stringify(schema), PATH);

function refuses(schema: unknown, field: string, message: RegExp): void {
  const isRefused = (error: unknown) =>
    error instanceof Failure && error.kind === "invalid_response_schema" && error.field === `${PATH}${field}`;
  assert.throws(
    () => accepts(schema),
    (error) => isRefused(error) && message.test(String(error)),
    JSON.stringify(schema),
  );
}

describe("checkWhole", () => {
  it("accepts every keyword that answers are checked against", () => {
    const nodes: unknown[] = [
      { anyOf: [{ type: "object" }, { type: "object", properties: { a: STRING } }] },
      { oneOf: [REF, { type: "null" }], discriminator: { propertyName: "kind", mapping: { a: "#/$defs/d" } } },
      { allOf: [REF, { minLength: 2 }] },
      { $ref: "#" },
      { ...REF, description: "A.", maxLength: 3 },
      { type: "number", multipleOf: 0.01, exclusiveMinimum: 0, exclusiveMaximum: 9 },
      { type: "object", additionalProperties: REF, propertyNames: { pattern: "^[a-z]+$" }, maxProperties: 3 },
      { type: "array", prefixItems: [STRING], items: false, uniqueItems: true },
      { type: ["object", "array", "null"] },
      JSON.parse('{"if":{"type":"string"},"then":{"minLength":1},"else":{"not":{"type":"null"}}}'),
      ...[{}, true, { default: 1, examples: 2 }, { type: "array" }],
    ];
    for (const node of nodes) {
      accepts(withProperty(node));
      accepts(withProperty(STRING, { type: "array", items: node }));
    }
  });

  it("refuses what cannot be checked, with the path of the node and the keyword", () => {
    const cases: [node: unknown, message: RegExp, step?: string][] = [
      [{ unevaluatedProperties: false }, /"unevaluatedProperties" is not supported/],
      [{ anyOf: [STRING, { minLenght: 1 }] }, /"minLenght" is not supported/, ".anyOf[1]"],
      [{ additionalProperties: { type: "text" } }, /"type" has a value/, ".additionalProperties"],
      [{ properties: { "a b": { minimum: "1" } } }, /"minimum" has a value/, '.properties["a b"]'],
      [{ items: [STRING] }, /"items" has a value/],
      [{ anyOf: [] }, /"anyOf" has a value/],
      [{ multipleOf: 0 }, /"multipleOf" has a value/],
      [{ $ref: "#/$defs/none" }, /must name a schema in the same document/],
      [{ $ref: "https://example.com/a.json" }, /must name a schema in the same document/],
      [{ $dynamicRef: "#a" }, /"\$dynamicRef" is not supported/],
      [{ anyOf: [1] }, /must be an object/, ".anyOf[0]"],
      [{ type: "object", required: ["a"], additionalProperties: false }, /"required" names "a"/],
    ];
    for (const [node, message, step = ""] of cases) refuses(withProperty(node), `.properties.p${step}`, message);
    refuses({ ...withProperty({ $ref: "#/$comment" }), $comment: "a" }, "", /leads to what is no schema/);
    refuses({ ...withProperty({ $ref: "#/default" }), default: { format: "date" } }, "", /"format" is not supported/);
  });

  it("refuses a root of another type, one that is too large, and one that is nested too deeply", () => {
    refuses({ type: "array" }, "", /must be "object"/);
    for (const root of [{}, { anyOf: [{ type: "object" }] }, { type: ["object"] }]) refuses(root, "", /"object"/);
    refuses({ type: "object", description: "x".repeat(33_000) }, "", /too large/);
    const nested = (levels: number): object => (levels === 1 ? STRING : { type: "array", items: nested(levels - 1) });
    accepts(withProperty({ anyOf: [nested(9)] }));
    refuses(withProperty(nested(10)), `.properties.p${".items".repeat(9)}`, /deeper than 10 levels/);
  });

  it("refuses references that come back to the same value", () => {
    const loops = [REF, { anyOf: [STRING, REF] }, { not: REF }, { allOf: [{ if: STRING, else: REF }] }];
    for (const d of loops) refuses(withProperty(STRING, d), ".$defs.d", /leads back to itself/);
    refuses(withProperty(REF, { anyOf: [{ $ref: "#/properties/p" }] }), ".properties.p", /leads back to itself/);
    accepts(withProperty(REF, { type: "object", properties: { next: { anyOf: [REF, { type: "null" }] } } }));
  });

  it("takes little time, whatever references multiply", () => {
    const names = Array.from({ length: 450 }, (_, i) => `p${i}`);
    const listed = { enum: names.map((_, i) => i) };
    const properties = (schema: object) => Object.fromEntries(names.map((name) => [name, schema]));
    const schemas = [
      withProperty({ anyOf: names.map(() => REF) }, { type: "object", properties: properties({ const: 1 }) }),
      {
        ...withProperty({ anyOf: [REF, { type: "object" }] }),
        $defs: { d: { properties: properties({ $ref: "#/$defs/e" }) }, e: listed },
      },
      withProperty({ anyOf: names.map((_, i) => ({ properties: { kind: { const: i }, next: { $ref: "#" } } })) }),
    ];
    for (const schema of schemas) {
      const text = JSON.stringify(schema);
      const before = process.threadCpuUsage();
      checkWhole(text, PATH);
      const validate = createValidators().get(text);
      validate(JSON.stringify({ p: properties({}) }));
      const { user, system } = process.threadCpuUsage(before);
      assert.ok(user + system < 300_000, `${user + system} µs: ${text.slice(0, 80)}`);
    }
  });
});

describe("checkWhole with patterns", () => {
  const schemaOf = (patterns: string[]) => {
    const entries = patterns.map((pattern, i) => [`p${i}`, { type: "string", pattern }]);
    return { type: "object", properties: Object.fromEntries(entries) };
  };
  const repeated = (part: string, length: number) => part.repeat(length / part.length);

  it("accepts those of zod, and the same class of Unicode in many members", () => {
    const { date, datetime, duration } = z.iso;
    const types = [date(), datetime({ offset: true, local: true }), duration(), z.email(), z.uuid(), z.cidrv6()];
    const written = types.map((type) => String(z.toJSONSchema(type).pattern));
    for (const patterns of [
      [...written, "a".repeat(512)],
      [repeated("\\p{L}", 160)],
      Array(200).fill("^[\\p{L}\\P{N}]+$"),
    ])
      accepts(schemaOf(patterns));
  });

  it("refuses those that JavaScript cannot read, that refer to groups, or that are too large", () => {
    for (const pattern of ["(", "a".repeat(513), "(a)\\1", "(?:a{999}){999}"])
      refuses(schemaOf([pattern]), ".properties.p0", /"pattern" must have regular expressions/);
    const many = Array.from({ length: 50 }, (_, i) => `a{500}${i}`);
    assert.throws(() => accepts(schemaOf(many)), /"pattern" must have regular expressions/);
  });
});

describe("a tree of objects that name their kind", () => {
  const KINDS = ["and", "or", "not", "is"];
  const branch = (kind: string) => ({
    type: "object",
    properties: { kind: { const: kind }, of: { type: "array", items: { $ref: "#/$defs/tree" } } },
    required: ["kind", "of"],
    additionalProperties: false,
  });
  const schemaOf = (keyword: string) => ({
    type: "object",
    properties: { tree: { $ref: "#/$defs/tree" } },
    required: ["tree"],
    $defs: { tree: { [keyword]: KINDS.map(branch) } },
  });
  const tree = (depth: number): object => ({
    kind: KINDS[depth % KINDS.length],
    of: depth === 0 ? [] : [tree(depth - 1)],
  });
  const validators = createValidators();

  for (const keyword of ["anyOf", "oneOf"])
    it(`is checked in a time that grows with the tree, with ${keyword}`, () => {
      accepts(schemaOf(keyword));
      const validate = validators.get(JSON.stringify(schemaOf(keyword)));
      assert.ok(validate(JSON.stringify({ tree: tree(150) })).ok);
      const wrong = JSON.stringify({ tree: tree(20) }).replace('"kind":"and","of":[]', '"kind":"and","of":1');
      const verdict = validate(wrong);
      assert.match(verdict.ok ? "" : verdict.errors.join(), /\.of\[0\]\.of: must be array/);
      const other = validate('{"tree":{"kind":"xor","of":[]}}');
      assert.match(other.ok ? "" : other.errors.join(), /\$\.tree\.kind: must be "and"/);
    });

  it("is valid as ajv has it", () => {
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, depthSize: "medium" },
        { weight: 1, arbitrary: fc.constantFrom<unknown>(1, null, {}, [], { kind: "is" }, { kind: ["is"], of: [] }) },
        {
          weight: 9,
          arbitrary: fc.record(
            { kind: fc.constantFrom(...KINDS, "xor"), of: fc.array(tie("value"), { maxLength: 2 }) },
            { requiredKeys: ["kind", "of"] },
          ),
        },
      ),
    }));
    for (const keyword of ["anyOf", "oneOf"]) {
      const schema = schemaOf(keyword);
      const expected = new Ajv2020({ strict: false }).compile(schema);
      const validate = validators.get(JSON.stringify(schema));
      fc.assert(
        fc.property(value, (tree) => {
          assert.equal(validate(JSON.stringify({ tree })).ok, expected({ tree }), JSON.stringify(tree));
        }),
        { numRuns: 300 },
      );
    }
  });
});
