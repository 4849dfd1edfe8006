import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { extractObject, repairJson } from "../../../src/engine/structured/repair.ts";
import { codePoint } from "../../helpers/code-point.ts";

const repairsTo = (answer: string, expected: unknown) => {
  const text = repairJson(answer);
  assert.ok(text !== undefined, answer);
  assert.deepEqual(JSON.parse(text), expected, answer);
};
const isUnread = (answer: string) => assert.equal(repairJson(answer), undefined, answer);

// Without the names that V8's JSON.parse may misread (nodejs/node#63785).
const name = fc.string().filter((text) => !/["\\\p{Cc}]/u.test(text) && text !== "__proto__");
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(
      fc.string({ unit: codePoint }),
      fc.constantFrom("{", '"', "}", "it's", "// x", "a\nb", "\\", ", ", '": "'),
    ),
    fc.oneof(fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));
const object = fc.dictionary(name, value, { maxKeys: 4, noNullPrototype: true });

/** An object with common errors of JSON: Python's literals and quotes, comments, trailing commas, raw line ends. */
function careless(node: unknown): string {
  if (Array.isArray(node)) return `[${node.map((item) => `${careless(item)},`).join(" ")}]`;
  if (typeof node === "object" && node !== null) {
    const members = Object.entries(node).map(([key, item]) => {
      const bare = /^[a-zA-Z_$]\w*$/.test(key) ? key : careless(key);
      return `\n  ${bare} : /* "}" */ ${careless(item)}, // it's "{\n`;
    });
    return `{${members.join("")}}`;
  }
  if (typeof node === "string") return `'${node.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  return node === null ? "None" : node === true ? "True" : node === false ? "False" : String(node);
}

describe("repairJson", () => {
  it("leaves valid JSON as it is, apart from space around it", () => {
    const text = '{ "b":1.0, "10":123456789012345678901234567890 , "2":"\\u0041" }';
    assert.equal(repairJson(text), text);
    assert.equal(repairJson(`\ufeff\n ${text} \n`), text);
    assert.equal(repairJson(" [1] "), "[1]");
    assert.equal(repairJson('"{"'), '"{"');
  });

  it("finds an object in prose and code fences", () => {
    fc.assert(
      fc.property(object, (node) => {
        const text = JSON.stringify(node, null, 2);
        repairsTo(`Here's the answer:\n\n\`\`\`json\n${text}\n\`\`\`\nIt's {x} and \\frac{1}{2}.`, node);
        repairsTo(`Let S = {1, 2} with [3] and \\[ {x} \\].\n${text}`, node);
      }),
    );
  });

  it("reads common errors of JSON", () => {
    fc.assert(fc.property(object, (node) => repairsTo(careless(node), node)));
  });

  it("keeps the order of names and the digits of numbers", () => {
    const careless = "{'b': 1.0, '10': 123456789012345678901234567890, 2: 1}";
    isUnread(careless);
    assert.equal(repairJson(careless.replace("2:", "'2':")), '{"b":1.0,"10":123456789012345678901234567890,"2":1}');
  });

  it("repairs strings", () => {
    repairsTo('{"a": "one\ntwo\tthree"}', { a: "one\ntwo\tthree" });
    repairsTo('{"a": "He said "yes", then left", "b": "c"}', { a: 'He said "yes", then left', b: "c" });
    repairsTo('{"a": "say "hi"", "b": 1}', { a: 'say "hi"', b: 1 });
    repairsTo("{'a': 'it's Ann's', 'b': 'c \"d\"'}", { a: "it's Ann's", b: 'c "d"' });
    repairsTo(String.raw`{"a": "\sqrt{x} \$5 it\'s \u12",}`, { a: String.raw`\sqrt{x} \$5 it's \u12` });
    repairsTo('{"url": "http://x.y/z", // the address\n}', { url: "http://x.y/z" });
  });

  it("never completes truncated JSON", () => {
    fc.assert(
      fc.property(object, fc.nat(), fc.boolean(), (node, at, isCareless) => {
        const text = isCareless ? careless(node) : JSON.stringify(node);
        const cut = text.slice(0, at % text.length);
        isUnread(cut);
        isUnread(`\`\`\`json\n${cut}`);
        isUnread(`An example is {"a":1}.\n\`\`\`json\n${cut.length > 1 ? cut : '{"'}`);
      }),
      { numRuns: 300 },
    );
  });

  it("never invents a value or drops one", () => {
    for (const answer of [
      '{"a":}',
      '{"a":1,"b"}',
      '{"a":undefined}',
      '{"a":NaN}',
      '{"a":five}',
      '{"a":1,000}',
      '{"a":[1,000]} ',
      '{"a":1_000}',
      '{"a":01}',
      '{"a":.5}',
      '{"a":1/2}',
      '{"a":[1,2,...]}',
      '{"a":"x" "b":"y"}',
      '{"a":"x"+"y"}',
      '{"a":"x"\n"y"}',
      '{"a":"64" tall"}',
      '{"reasoning":"1 + 1 is 2\n\n "answer":"2"}',
      '{"a":"He said "yes, then left"}',
      '{"a":1]',
      '{"a":[1}',
    ]) {
      isUnread(answer);
      isUnread(`The answer: ${answer}`);
    }
  });

  it("takes the last of several objects, but none if something unreadable follows", () => {
    repairsTo('First {"a":1}, so {"a":2}.', { a: 2 });
    repairsTo('{"a":{"b":1}} and {"a":{"b":2}}', { a: { b: 2 } });
    repairsTo('{"a":1} is what f() {} gives', { a: 1 });
    repairsTo("The answer is {}.", {});
    isUnread('{"a":1} and {"a":}');
    isUnread('{"a":1} and {"a":2');
    isUnread('[{"a":1},{"a":2}] ...');
  });

  it("reads hostile text in linear time", () => {
    const parts = ["{", '{"', '{"a":', "[{", 'x" ', '" ,', "{'a", "/* x */", "\\", '{"a":1,} ', "it's ", "1,", "{ "];
    const start = process.cpuUsage();
    for (const part of parts) {
      const rest = part.repeat(128_000 / part.length);
      for (const answer of [rest, `{"a":"${rest}`, `{"a":[${rest}]}`, `{'a':'${rest}',}`]) repairJson(answer);
    }
    // 52 texts of 128 KB in 0.5 s; a quadratic reader takes seconds for one.
    assert.ok(process.cpuUsage(start).user < 5_000_000);
  });
});

describe("extractObject", () => {
  it("gives the object as compact JSON with its own literals", () => {
    assert.deepEqual(extractObject('```json\n{ "b" : 1.0, "10": [ ], "b": 1e2 }\n```'), {
      structured: '{"b":1e2,"10":[]}',
      error: null,
    });
  });

  it("says why there is no object", () => {
    const reasons: [answer: string, error: RegExp][] = [
      ["", /no JSON object/],
      ["I cannot say.", /no JSON object/],
      ["[1,2]", /a JSON list/],
      ['```json\n[{"a":1}]\n```', /a JSON list/],
      ["42", /single JSON value/],
      ['"text"', /single JSON value/],
      ["null", /single JSON value/],
      ['{"a":"x', /cut off/],
      ['{"a":}', /not valid/],
      [`{"a":${"[".repeat(600)}${"]".repeat(600)}}`, /deeper than 512/],
      [`{"a":${"[".repeat(600)}${"]".repeat(600)},}`, /deeper than 512/],
    ];
    for (const [answer, error] of reasons) {
      const result = extractObject(answer);
      assert.equal(result.structured, null);
      assert.match(result.error ?? "", error);
    }
  });
});
