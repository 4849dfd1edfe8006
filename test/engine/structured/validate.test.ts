import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { z } from "zod";
import { checkSchema } from "../../../src/engine/structured/check-schema.ts";
import { createValidators, whileInTime } from "../../../src/engine/structured/validate.ts";

const validators = createValidators();

function judge(schema: unknown, answer: unknown) {
  const text = typeof schema === "string" ? schema : JSON.stringify(schema);
  checkSchema(text);
  return validators.get(text)(typeof answer === "string" ? answer : JSON.stringify(answer));
}

const ok = (schema: unknown, answer: unknown) =>
  assert.equal(judge(schema, answer).ok, true, JSON.stringify(judge(schema, answer)));
const errors = (schema: unknown, answer: unknown) => {
  const verdict = judge(schema, answer);
  assert.equal(verdict.ok, false);
  return verdict.ok ? [] : [...verdict.errors];
};

/** Schema and answer texts for one property `n`, written as given. */
const schemaOf = (n: string) =>
  `{"type":"object","properties":{"n":${n}},"required":["n"],"additionalProperties":false}`;
const answerOf = (n: string) => `{"n":${n}}`;
const fits = (schema: string, answer: string) => judge(schemaOf(schema), answerOf(answer)).ok;

describe("createValidators", () => {
  const invoice = {
    type: "object",
    properties: {
      number: { type: "string", minLength: 2, maxLength: 4 },
      paid: { type: ["boolean", "null"] },
      currency: { type: "string", enum: ["EUR", "USD"] },
      items: {
        type: "array",
        minItems: 1,
        maxItems: 2,
        items: { type: "object", properties: { price: { type: "number", minimum: 0 } }, required: ["price"] },
      },
      kind: { type: "string", const: "invoice" },
    },
    required: ["number", "items"],
    additionalProperties: false,
  };

  it("gives a valid answer as compact JSON with its literals unchanged", () => {
    const answer = ' {"number" : "A-1", "items":[ {"price":1.50, "10":1e2, "2":[ ]} ], "paid":null } ';
    assert.deepEqual(judge(invoice, answer), {
      ok: true,
      text: '{"number":"A-1","items":[{"price":1.50,"10":1e2,"2":[]}],"paid":null}',
    });
    assert.deepEqual(judge(schemaOf('{"type":"integer"}'), '{"n":"x","n":1}'), { ok: true, text: '{"n":1}' });
  });

  it("gives the place and the expected value of each error", () => {
    const answer = { number: "A", paid: 1, currency: "GBP", items: [{ price: -1 }, {}], kind: "note", "a b": 1 };
    assert.deepEqual(errors(invoice, answer).sort(), [
      '$.currency: must be one of ["EUR","USD"]',
      "$.items[0].price: must be >= 0",
      '$.items[1]: must have the property "price"',
      '$.kind: must be "invoice"',
      "$.number: must NOT have fewer than 2 characters",
      "$.paid: must be boolean,null",
      '$: must not have the property "a b"',
    ]);
    assert.deepEqual(errors(invoice, {}).sort(), [
      '$: must have the property "items"',
      '$: must have the property "number"',
    ]);
  });

  it("lists ten errors at most", () => {
    const list = { type: "object", properties: { a: { type: "array", items: { type: "string" } } } };
    assert.equal(errors(list, { a: Array(5000).fill(1) }).length, 10);
  });

  it("looks for no more than ten errors, which many members of many objects can lack", () => {
    const names = Array.from({ length: 800 }, (_, i) => `p${i}`);
    const properties = Object.fromEntries(names.map((name) => [name, { type: "null" }]));
    const items = { type: "object", properties, required: names };
    const list = { type: "object", properties: { a: { type: "array", items } } };
    const before = process.threadCpuUsage();
    assert.equal(errors(list, { a: Array(40_000).fill({}) }).length, 10);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 500_000, `${user + system} µs`);
  });

  it("refuses text that is not a JSON object", () => {
    for (const answer of [
      "",
      "{",
      '{"n":1',
      "{'n':1}",
      "[]",
      '"x"',
      "null",
      "1",
      '{"n":NaN}',
      `${"[".repeat(100_000)}`,
    ]) {
      assert.ok(errors({ type: "object" }, answer).length === 1);
    }
    assert.equal(errors({ type: "object" }, `{"a":${"[".repeat(600)}${"]".repeat(600)}}`).length, 1);
  });

  it("counts characters as code points", () => {
    assert.equal(fits('{"type":"string","maxLength":1}', '"😀"'), true);
    assert.equal(fits('{"type":"string","minLength":2}', '"😀"'), false);
    assert.equal(fits('{"type":"string","maxLength":2}', '"e\\u0301"'), true);
  });

  it("ignores annotations and the dialect", () => {
    const notes = {
      default: { $ref: "#/x" },
      examples: 1,
      deprecated: "x",
      readOnly: 1,
      writeOnly: 0,
      $comment: {},
      title: 1,
    };
    const node = { type: ["string", "null"], description: 7, ...notes };
    for (const $schema of ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]) {
      ok({ $schema, type: "object", properties: { n: node }, ...notes }, { n: "x" });
    }
  });

  it("treats every name as an ordinary one", () => {
    const names = [
      "__proto__",
      "constructor",
      "toString",
      "hasOwnProperty",
      "prototype",
      "length",
      "",
      ".",
      "/~~1~0",
      "a/b~c",
      "10",
    ];
    const hostile = [
      '"',
      "'",
      "`",
      "\\",
      "\n",
      "\u2028",
      `\${process.exit(1)}`,
      '"];throw 1;//',
      "*/ throw 1 /*",
      "😀",
      "\ud800",
    ];
    for (const name of [...names, ...hostile]) {
      const key = JSON.stringify(name);
      const schema =
        `{"type":"object","properties":{${key}:{"type":"integer"}},` +
        `"required":[${key}],"additionalProperties":false}`;
      assert.deepEqual(judge(schema, `{${key}:1}`), { ok: true, text: `{${key}:1}` });
      assert.equal(errors(schema, `{${key}:"x"}`).length, 1, key);
      assert.match(errors(schema, "{}").join(), /must have the property/);
      assert.match(
        errors('{"type":"object","additionalProperties":false}', `{${key}:1}`).join(),
        /must not have the property/,
      );
      ok('{"type":"object"}', `{${key}:1}`);
    }
    const nested = '{"type":"object","properties":{"__proto__":{"type":"object","properties":{"a":{"type":"null"}}}}}';
    assert.deepEqual(errors(nested, '{"__proto__":{"a":1}}'), ["$.__proto__.a: must be null"]);
    assert.deepEqual(errors(schemaOf('{"type":"string","enum":["*/","`"]}'), answerOf('"x"')), [
      '$.n: must be one of ["*/","`"]',
    ]);
  });

  it("compares numbers by their exact value", () => {
    const big = "123456789012345678901234567890";
    const cases: [schema: string, answer: string, fits: boolean][] = [
      ['{"type":"integer"}', "1.0", true],
      ['{"type":"integer"}', "1.5", false],
      ['{"type":"integer"}', "15e-1", false],
      ['{"type":"integer"}', big, true],
      ['{"type":"integer"}', "1e400", true],
      ['{"type":"integer"}', "-1e400", true],
      ['{"type":"integer"}', "1e-400", false],
      ['{"type":"integer"}', "9007199254740993.5", false],
      ['{"type":["integer","string"]}', "9007199254740993.5", false],
      ['{"type":["integer","number"]}', "9007199254740993.5", true],
      ['{"type":"number"}', "1e400", true],
      ['{"type":"string"}', "1e400", false],
      [`{"type":"integer","const":${big}}`, big, true],
      [`{"type":"integer","const":${big}}`, "123456789012345678901234567891", false],
      [`{"type":"number","enum":[1,${big},"x"]}`.replace(',"x"', ""), `${big}.0`, true],
      [`{"type":"number","enum":[1,${big}]}`, "123456789012345678901234567890.1", false],
      ['{"type":"number","enum":[0.1]}', "0.1000000000000000000001", false],
      ['{"type":"number","const":0}', "1e-400", false],
      ['{"type":"number","const":0}', "-0.0e5", true],
      ['{"type":"number","maximum":9007199254740992}', "9007199254740993", false],
      ['{"type":"number","minimum":9007199254740993}', "9007199254740993", true],
      ['{"type":"number","minimum":9007199254740993}', "9007199254740992", false],
      ['{"type":"number","maximum":1e400}', "9e399", true],
      ['{"type":"number","maximum":1e400}', "1e401", false],
      ['{"type":"number","minimum":-1e400}', "-1e401", false],
      ['{"type":"number","minimum":1e-400}', "0", false],
      ['{"type":"number","maximum":1e99999999999999999998}', "1e99999999999999999999", false],
      [
        '{"type":"array","items":{"type":"integer","maximum":9007199254740992},"maxItems":1e400}',
        "[1,9007199254740993]",
        false,
      ],
      ['{"type":"string","maxLength":1e400}', '"x"', true],
    ];
    for (const [schema, answer, expected] of cases) assert.equal(fits(schema, answer), expected, `${schema} ${answer}`);
    assert.deepEqual(errors(schemaOf('{"type":"integer"}'), answerOf("1e-400")), ["$.n: must be integer"]);
  });

  it("orders any two numbers as exact arithmetic does", () => {
    const literal = fc
      .tuple(fc.bigInt({ min: -1000n, max: 1000n }), fc.constantFrom(0, 1, 17, 30, 400), fc.integer({ min: 0, max: 3 }))
      .map(([value, zeros, places]) => ({
        value: value * 10n ** BigInt(zeros + 3 - places),
        literal: `${value}e${zeros - places}`,
      }));
    fc.assert(
      fc.property(literal, literal, (bound, number) => {
        assert.equal(fits(`{"type":"number","minimum":${bound.literal}}`, number.literal), number.value >= bound.value);
        assert.equal(fits(`{"type":"number","maximum":${bound.literal}}`, number.literal), number.value <= bound.value);
        assert.equal(fits(`{"type":"number","const":${bound.literal}}`, number.literal), number.value === bound.value);
        assert.equal(fits('{"type":"integer"}', number.literal), number.value % 1000n === 0n);
      }),
      { numRuns: 50 },
    );
  });

  it("compiles a schema once, and caches a bounded number", () => {
    const small = createValidators(2);
    const schema = (i: number) => schemaOf(`{"type":"integer","const":${i}}`);
    const first = small.get(schema(1));
    small.get(schema(2));
    assert.equal(small.get(schema(1)), first);
    small.get(schema(3));
    assert.equal(small.get(schema(1)), first);
    const second = small.get(schema(2));
    small.get(schema(3));
    small.get(schema(1));
    assert.notEqual(small.get(schema(2)), second);
    const large = createValidators();
    const huge = (space: number) => `{"type":"object"}${" ".repeat(space)}`;
    const validator = large.get(huge(600_000));
    assert.equal(large.get(huge(600_000)), validator);
    large.get(huge(500_000));
    assert.notEqual(large.get(huge(600_000)), validator);
  });
});

describe("an answer that cannot be checked in time", () => {
  const schemaWith = (pattern: unknown) =>
    JSON.stringify({ type: "object", properties: { a: { type: "array", items: { type: "string", pattern } } } });

  it("is not valid, and no further answer of the request is checked", () => {
    const hard = schemaWith("(?:(?=.*a)a|b)+$");
    const validate = whileInTime(validators.get(hard));
    assert.equal(validate('{"a":["aa"]}').ok, true);
    assert.equal(validate(JSON.stringify({ a: [`${"a".repeat(2_000)}!`] })).ok, false);
    assert.equal(validate('{"a":["aa"]}').ok, false);
    assert.equal(whileInTime(validators.get(hard))('{"a":["aa"]}').ok, true, "of another request");
  });

  it("is none with usual formats, however long it is", () => {
    const all = Array.from({ length: 1_000 }, (_, i) => `ann.berg${i}@mail.example.com`);
    const schema = schemaWith(z.toJSONSchema(z.email()).pattern);
    assert.equal(validators.get(schema)(JSON.stringify({ a: all })).ok, true);
  });
});
