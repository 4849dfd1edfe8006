import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, test } from "vitest";
import { parseJson } from "../../../src/contract/json.ts";
import { LooseEffort } from "../../../src/engine/structured/effort.ts";
import { prepareSchema } from "../../../src/engine/structured/json-schema.ts";
import { looseSchema } from "../../../src/engine/structured/loose-schema.ts";
import { Check } from "../../../src/engine/structured/rules.ts";

type Node = Record<string, unknown> | boolean;

const errorsOf = (schema: string, value: string) => {
  const check = new Check(new LooseEffort(100_000));
  prepareSchema(parseJson(schema)).rule(parseJson(value), undefined, check);
  return check.errors;
};

/** What is said of arguments by a schema, and the processor time that it took in milliseconds. */
function judge(schema: string, ...values: string[]) {
  const effort = new LooseEffort(100_000);
  const before = process.threadCpuUsage();
  const verdicts = values.map((value) => looseSchema(schema).validate(value, effort).ok);
  const { user, system } = process.threadCpuUsage(before);
  return { verdicts, ms: (user + system) / 1_000, gap: looseSchema(schema).gap };
}

// ajv fails on names such as toString.
const NAMES = ["a", "bb", "é", "1"];

const values: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(null, true, false, 0, 1, 2, 3, -1, 1.5, "", "a", "bb", "toString", "😀"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;

const some = (model: Record<string, fc.Arbitrary<unknown>>) => fc.record(model, { requiredKeys: [] });
const name = fc.constantFrom(...NAMES);
const size = fc.nat(3);
const number = fc.constantFrom(-1, 0, 1, 1.5, 2);

/** Schemas with all keywords that are checked; `$ref` leads to `$defs`, whose schemas refer to themselves at most. */
const { schema } = fc.letrec<{ schema: Node; map: Record<string, Node>; list: Node[] }>((tie) => ({
  map: fc.dictionary(name, tie("schema"), { maxKeys: 2, noNullPrototype: true }),
  list: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }),
  schema: fc.oneof(
    { maxDepth: 3, depthIdentifier: "schema" },
    fc.boolean(),
    some({
      type: fc.oneof(
        fc.constantFrom("object", "array", "string", "number", "integer", "boolean", "null"),
        fc.constantFrom(["string", "null"], ["integer", "array"], ["object", "number"]),
      ),
      minimum: number,
      exclusiveMaximum: number,
    }),
    some({ maximum: number, exclusiveMinimum: number, multipleOf: fc.constantFrom(0.5, 1, 2, 3) }),
    some({ minLength: size, maxLength: size, pattern: fc.constantFrom("^a", "b+$", "😀", "x") }),
    some({ enum: fc.array(values, { minLength: 1, maxLength: 4 }) }),
    some({ const: values }),
    some({ $ref: fc.constantFrom("#/$defs/leaf", "#/$defs/tree") }),
    some({
      ...{ items: tie("schema"), prefixItems: tie("list"), minItems: size, maxItems: size },
    }),
    // Apart from prefixItems and items, beside which ajv overlooks an empty list and items that are equal.
    some({ uniqueItems: fc.boolean(), contains: tie("schema"), minContains: size, maxContains: size }),
    some({
      ...{ properties: tie("map"), additionalProperties: tie("schema"), propertyNames: tie("schema") },
      ...{ required: fc.uniqueArray(name, { maxLength: 2 }), minProperties: size, maxProperties: size },
      patternProperties: fc.dictionary(fc.constantFrom("^a", "b", "."), tie("schema"), {
        ...{ maxKeys: 2, noNullPrototype: true },
      }),
      dependentRequired: fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), {
        ...{ maxKeys: 2, noNullPrototype: true },
      }),
      dependentSchemas: tie("map"),
    }),
    some({ allOf: tie("list"), anyOf: tie("list"), oneOf: tie("list"), not: tie("schema") }),
    some(Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, tie("schema")]))),
  ) as fc.Arbitrary<Node>,
}));

/** Undefined where the code that ajv has made uses a variable that it does not declare. */
function accepts(validate: ValidateFunction, value: unknown): boolean | undefined {
  try {
    return validate(value);
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

describe("a schema of JSON Schema 2020-12", () => {
  test("accepts the values that ajv accepts, whatever its keywords", () => {
    const $defs = {
      leaf: { type: ["integer", "string"], minLength: 1 },
      tree: { type: "object", additionalProperties: { $ref: "#/$defs/tree" } },
    };
    let refused = 0;
    fc.assert(
      fc.property(schema, fc.array(values, { minLength: 10, maxLength: 10 }), (root, samples) => {
        const whole = typeof root === "boolean" ? root : { ...root, $defs };
        const ajv = new Ajv2020({ strict: false, validateSchema: false, logger: false });
        const expected = ajv.compile(whole);
        for (const value of samples) {
          const errors = errorsOf(JSON.stringify(whole), JSON.stringify(value));
          if (errors.length > 0) refused++;
          const wanted = accepts(expected, value);
          if (wanted === undefined) continue;
          const said = `${JSON.stringify(whole)}\n${JSON.stringify(value)}\n${errors}`;
          assert.equal(errors.length === 0, wanted, said);
        }
      }),
      { numRuns: 1_500 },
    );
    assert.ok(refused > 1_000);
  });

  test("compares numbers by their values, whatever a double can hold", () => {
    const cases: [schema: string, value: string, fits: boolean][] = [
      ['{"multipleOf":0.01}', "19.99", true],
      ['{"multipleOf":0.01}', "19.995", false],
      ['{"multipleOf":0.1}', "0.3", true],
      ['{"multipleOf":7}', "7e400", true],
      ['{"multipleOf":7}', "1e400", false],
      ['{"multipleOf":1e-400}', "1", true],
      ['{"multipleOf":1e400}', "1", false],
      ['{"multipleOf":3}', "-0.0", true],
      ['{"exclusiveMinimum":9007199254740992}', "9007199254740993", true],
      ['{"enum":[12345678901234567890]}', "12345678901234567891", false],
      ['{"enum":[{"a":[1.0,{"b":2,"c":3}]}]}', '{"a":[1,{"c":3,"b":2e0}]}', true],
      ['{"uniqueItems":true}', "[1,1.0]", false],
      ['{"uniqueItems":true}', '["1",1]', true],
    ];
    for (const [text, value, fits] of cases) assert.equal(errorsOf(text, value).length === 0, fits, `${text} ${value}`);
  });

  test("says what is wrong, where, and what comes nearest", () => {
    const shape = { anyOf: [{ type: "string" }, { type: "object", properties: { r: { exclusiveMinimum: 0 } } }] };
    const root = { properties: { shapes: { items: shape }, tags: { propertyNames: { maxLength: 2 } } } };
    assert.deepEqual(errorsOf(JSON.stringify(root), '{"shapes":["x",{"r":0}],"tags":{"long":1}}'), [
      "$.shapes[1].r: must be > 0",
      "$.tags.long: must NOT have more than 2 characters",
    ]);
    for (const [keyword, message] of [
      ["anyOf", "must match a schema in anyOf"],
      ["oneOf", "must match exactly one schema in oneOf, not 0"],
    ]) {
      const text = `{"${keyword}":[{"minimum":5,"multipleOf":2},{"minimum":2},{"type":"string"}]}`;
      assert.deepEqual(errorsOf(text, "1"), [`$: ${message}; of the nearest one, $: must be >= 2`]);
    }
    assert.deepEqual(errorsOf('{"oneOf":[{"minimum":1},{"minimum":2}]}', "3"), [
      "$: must match exactly one schema in oneOf, not 2",
    ]);
    assert.equal(errorsOf('{"items":{"type":"null"}}', JSON.stringify(Array(50).fill(1))).length, 10);
    assert.deepEqual(errorsOf('{"type":"string","nullable":true}', "null"), []);
  });

  test("names the first keyword that it does not check", () => {
    const gaps = [
      ['{"properties":{"a":{"format":"date"}}}', 'the keyword "format" is not checked'],
      ['{"properties":{"format":{"minimum":1,"multipleOf":2}}}', undefined],
      ['{"unevaluatedProperties":false}', 'the keyword "unevaluatedProperties" is not checked'],
      ['{"items":[{"type":"string"}]}', 'the keyword "items" is not checked'],
      ['{"$ref":"http://a/b"}', 'the keyword "$ref" is not checked'],
      ['{"$ref":"#/$defs/none"}', 'the keyword "$ref" is not checked'],
      ['{"exclusiveMinimum":true}', 'the keyword "exclusiveMinimum" is not checked'],
      ['{"pattern":"("}', 'the keyword "pattern" is not checked'],
      [`{"pattern":"${"\\\\W?".repeat(400)}"}`, 'the keyword "pattern" is not checked'],
      ['{"pattern":"^\\\\d\\\\-\\\\d$"}', undefined],
      ['{"properties":{"a":1}}', "it is no schema of JSON Schema 2020-12"],
    ];
    for (const [text = "", gap] of gaps) {
      const { verdicts, gap: found } = judge(text, "{}");
      assert.deepEqual([found, verdicts], [gap, [true]], text);
    }
  });

  test("checks what stands beside a keyword whose value it cannot read", () => {
    const python = '{"patternProperties":{"(?P<a>x)":false},"additionalProperties":false,"required":["a"]}';
    const cases: [schema: string, value: string, fits: boolean][] = [
      ['{"type":"number","minimum":0,"exclusiveMinimum":true}', "-1", false],
      ['{"type":"string","pattern":"(?P<a>x)"}', "1", false],
      ['{"type":"string","pattern":"^\\\\d\\\\-\\\\d$"}', '"1-2"', true],
      ['{"type":"string","pattern":"^\\\\d\\\\-\\\\d$"}', '"12"', false],
      [python, '{"a":1}', true],
      [python, '{"b":1}', false],
      ['{"not":{"pattern":"(?P<a>x)"}}', '"x"', true],
    ];
    for (const [text, value, fits] of cases) assert.equal(errorsOf(text, value).length === 0, fits, `${text} ${value}`);
  });

  test("refuses no value for a keyword that it does not check", () => {
    const email = '{"type":"string","format":"email"}';
    const cases: [schema: string, value: string, fits: boolean][] = [
      [`{"oneOf":[${email},{"type":"string","format":"uri"}]}`, '"a@b.c"', true],
      [`{"oneOf":[${email},{"type":"string","format":"uri"}]}`, "1", false],
      [`{"oneOf":[${email},{"type":"string"},{"minLength":1}]}`, '"a@b.c"', false],
      [`{"not":${email}}`, '"a"', true],
      [`{"not":${email}}`, "1", true],
      [`{"not":{"anyOf":[${email},{"type":"null"}]}}`, '"a"', true],
      [`{"not":{"anyOf":[${email},{"type":"null"}]}}`, "null", false],
      [`{"not":{"not":${email}}}`, "1", false],
      [`{"if":${email},"then":{"maxLength":1},"else":{"minLength":9}}`, '"aa"', true],
      [`{"if":${email},"else":{"type":"null"}}`, "1", false],
      [`{"contains":${email},"maxContains":1}`, '["a","b"]', true],
      [`{"contains":${email}}`, "[1]", false],
      ['{"not":{"$ref":"http://a/b"}}', "1", true],
      ['{"anyOf":[{"type":"text"},{"type":"number"}]}', '"a"', true],
      ['{"anyOf":[{"type":"string","nullable":true},{"type":"number"}]}', "null", true],
      ['{"not":{"items":[{"type":"string"}]}}', "[1]", true],
    ];
    for (const [text, value, fits] of cases) assert.equal(errorsOf(text, value).length === 0, fits, `${text} ${value}`);
  });
});

describe("the work of checks is bounded", () => {
  const slow = `{"properties":{"a":{"type":"string","\\u0070attern":"^(a+)+$"}}}`;
  const long = JSON.stringify({ a: `${"a".repeat(100_000)}!` });

  test("for a pattern, however the schema spells the keyword, and for all calls of an answer together", () => {
    const { verdicts, ms } = judge(slow, '{"a":"aa"}', ...Array(8).fill(long), '{"a":"aa"}');
    assert.deepEqual(verdicts, [true, ...Array(9).fill(false)]);
    assert.ok(ms < 200, `${ms} ms`);
  });

  test("for a schema that refers to itself more often than the value is deep", () => {
    const doubling =
      '{"allOf":[{"$ref":"#/$defs/t"},{"$ref":"#/$defs/t"}],"$defs":{"t":{"items":{"$ref":"#"},"not":false}}}';
    const twice = '{"minProperties":0,"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}';
    const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    assert.deepEqual(judge(twice, deep(5), deep(40)).verdicts, [true, false]);
    assert.deepEqual(judge('{"minProperties":0,"anyOf":[{"$ref":"#"}]}', "{}").verdicts, [false]);
    assert.equal(judge(doubling, "{}").verdicts.length, 1);
    assert.ok(judge(twice, deep(41)).ms < 500);
  });

  test("for many values: as many steps as the effort has", () => {
    const text = '{"properties":{"a":{"items":{"anyOf":[{"type":"null"},{"minimum":1,"multipleOf":1}]}}}}';
    const list = (length: number) => `{"a":[${Array(length).fill(1).join()}]}`;
    assert.deepEqual(judge(text, list(10_000), list(10_000), list(100_000)).verdicts, [true, true, false]);
  });

  test("for branches that do not fit, whatever the value is", () => {
    const branches = (count: number, branch: (i: number) => object) =>
      JSON.stringify({ properties: { a: { anyOf: Array.from({ length: count }, (_, i) => branch(i)) } } });
    const words = Array.from({ length: 2_000 }, (_, i) => `word ${i}`);
    const tree = '{"properties":{"a":{"items":{"anyOf":[{"enum":["x"]},{"$ref":"#/properties/a"}]}}}}';
    const cases: [schema: string, value: string][] = [
      [branches(700, (i) => ({ minLength: 1e6 + i })), `{"a":"${"a".repeat(100_000)}"}`],
      [
        branches(700, (i) => ({ required: [`r${i}`] })),
        JSON.stringify({ a: Object.fromEntries(words.map((w) => [w, 1])) }),
      ],
      [branches(700, (i) => ({ multipleOf: 7 + i })), `{"a":${"1".repeat(100_000)}}`],
      [branches(1, () => ({ multipleOf: 7 })), `{"a":1e${"9".repeat(100_000)}}`],
      [
        `{"properties":{"a":{"items":{"not":{"multipleOf":${"7".repeat(999)}}}}}}`,
        `{"a":[${"1e999,".repeat(20_000)}1]}`,
      ],
      [
        JSON.stringify({ properties: { a: { items: { not: { not: { enum: words } } } } } }),
        `{"a":[${"1,".repeat(30_000)}1]}`,
      ],
      [tree, `{"a":${"[".repeat(300)}${"1,".repeat(100)}1${"]".repeat(300)}}`],
    ];
    for (const [schema, value] of cases) {
      const { verdicts, ms } = judge(schema, value);
      assert.deepEqual(verdicts, [schema === tree], schema.slice(0, 100));
      assert.ok(ms < 300, `${ms} ms: ${schema.slice(0, 100)}`);
    }
  });

  test("to prepare a schema: as the length of its text", () => {
    const withParts = (length: number) => {
      const parts = Array.from({ length }, (_, i) => `"p${i}":{}`).join();
      return `{"patternProperties":{${parts}},"additionalProperties":false}`;
    };
    assert.deepEqual(judge(withParts(9), '{"p7":1}', '{"other":1}').verdicts, [true, false]);
    const wide = withParts(3_000);
    assert.ok(wide.length < 32_768);
    const { ms, verdicts } = judge(wide, '{"other":1}');
    assert.deepEqual(verdicts, [false]);
    assert.ok(ms < 400, `${ms} ms`);
  });
});
