import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { type JsonNode, parseJson, stringifyJson } from "../../../src/contract/json.ts";
import { voteFields } from "../../../src/engine/fuse/fields.ts";
import { medoid } from "../../../src/engine/fuse/medoid.ts";
import { valueKey } from "../../../src/engine/fuse/value.ts";

const vote = (...texts: string[]) => voteFields(texts.map((json) => ({ json, weight: 1 })));

test("merges three candidates with one mistake each into one without mistakes", () => {
  assert.equal(vote('{"a":1,"b":2,"c":9}', '{"a":1,"b":9,"c":3}', '{"a":9,"b":2,"c":3}'), '{"a":1,"b":2,"c":3}');
  assert.equal(vote('{"x":{"a":1,"b":9}}', '{"x":{"a":9,"b":2}}', '{"x":{"a":1,"b":2}}'), '{"x":{"a":1,"b":2}}');
});

test("compares values by meaning and keeps them as written", () => {
  assert.equal(vote('{"a":1.0,"b":2}', '{"a":1,"b":2}', '{"a":7,"b":2}'), '{"a":1.0,"b":2}');
  assert.equal(vote('{"a":"Paris."}', '{"a":"paris"}', '{"a":"Rome"}'), '{"a":"Paris."}');
  assert.equal(vote('{"a":"$1,200"}', '{"a":"1200"}', '{"a":"1300"}'), '{"a":"$1,200"}');
  assert.equal(vote('{"a":"5 kg"}', '{"a":"5 lb"}', '{"a":"5 lb"}'), '{"a":"5 lb"}');
  assert.equal(vote('{"a":"1234"}', '{"a":"01234"}', '{"a":"01234"}'), '{"a":"01234"}');
  assert.equal(vote('{"a":null}', '{"a":"null"}', '{"a":"null"}'), '{"a":"null"}');
});

test("compares texts without the punctuation at their ends", () => {
  const keys = ["'it.' ", " *it* ", "it ?!", '"it"', "It"].map((text) => {
    return valueKey({ kind: "scalar", text: JSON.stringify(text) });
  });
  assert.deepEqual(new Set(keys), new Set(['"it']));
  assert.equal(valueKey({ kind: "scalar", text: JSON.stringify("'!!") }), '"');
});

test("keeps digits beyond a double and names like integers", () => {
  const texts = [
    '{"10":12345678901234567890,"2":1.50,"__proto__":"\\u0041"}',
    '{"10":12345678901234567890,"2":1.50,"__proto__":"\\u0041"}',
    '{"10":12345678901234567891,"2":1.51,"__proto__":"B"}',
  ];
  assert.equal(vote(...texts), texts[0]);
});

test("keeps a member that more than half of the candidates have", () => {
  assert.equal(vote('{"a":1,"b":2}', '{"a":1,"b":2}', '{"a":1,"c":3}'), '{"a":1,"b":2}');
  assert.equal(vote('{"a":1,"d":4}', '{"a":1,"c":3}', '{"a":1}'), '{"a":1}');
});

test("votes on lists of equal length by element, and else takes the medoid's list", () => {
  assert.equal(vote('{"a":[1,2,9]}', '{"a":[1,9,3]}', '{"a":[9,2,3]}'), '{"a":[1,2,3]}');
  assert.equal(vote('{"a":[1,2]}', '{"a":[1,2]}', '{"a":[1,2,3]}'), '{"a":[1,2]}');
  assert.equal(vote('{"k":1,"a":[1]}', '{"k":1,"a":[1,2]}', '{"k":2,"a":[1,2,3,4]}'), '{"k":1,"a":[1,2]}');
});

test("votes on the kind of a value first", () => {
  assert.equal(vote('{"a":{"b":1}}', '{"a":{"b":1}}', '{"a":[1]}'), '{"a":{"b":1}}');
});

test("takes free text from the medoid", () => {
  const long = (words: string) => `${words} ${"and this goes on for so long that it is prose ".repeat(2)}`;
  const texts = [
    JSON.stringify({ a: 1, why: long("first reason") }),
    JSON.stringify({ a: 1, why: long("second reason") }),
    JSON.stringify({ a: 2, why: "altogether another story that shares hardly a word with what those two have said" }),
  ];
  const voted = voteFields(texts.map((json, index) => ({ json, weight: index === 2 ? 1.5 : 1 })));
  assert.equal(voted, texts[0]);
});

test("applies weights, and gives a tie to the heavier candidate, then to the first", () => {
  const texts = ['{"a":1}', '{"a":2}'];
  assert.equal(voteFields(texts.map((json, index) => ({ json, weight: index + 1 }))), '{"a":2}');
  assert.equal(vote(...texts), '{"a":1}');
  assert.equal(medoid(texts.map((json) => ({ json, weight: 0 }))), 0);
});

test("throws without candidates and for text that is not JSON", () => {
  assert.throws(() => voteFields([]), RangeError);
  assert.throws(() => vote("{}", "no"), SyntaxError);
  assert.equal(medoid([]), -1);
});

test("takes as medoid the draft that shares most words with the others", () => {
  const drafts = [
    "the sky is blue because of scattering",
    "the sky is blue because light is scattering",
    "bananas grow on trees in the south",
  ];
  assert.notEqual(medoid(drafts.map((json) => ({ json, weight: 1 }))), 2);
  assert.equal(medoid(["x y z w", "a b c d", "a b c d"].map((json) => ({ json, weight: 1 }))), 1);
});

test("compares candidates of 200,000 characters in less than quadratic time", () => {
  const texts = ["lorem ipsum ", "dolor sit ", "x", "!", "' "].map((words) =>
    JSON.stringify({ text: `${words.repeat(200_000 / words.length)}end` }),
  );
  texts.push(
    `[${"1,".repeat(100_000)}1]`,
    `{${Array.from({ length: 20_000 }, (_, index) => `"n${index}":${index}`).join()}}`,
  );
  assert.ok(medoid(texts.map((json) => ({ json, weight: 1 }))) >= 0);
  vote(...texts);
});

const json = fc.json({ maxDepth: 3 }).map((text) => stringifyJson(parseJson(text)));

type Scalar = Extract<JsonNode, { kind: "scalar" }>;

function scalars(text: string): Scalar[] {
  const read = (node: JsonNode): Scalar[] => {
    if (node.kind === "scalar") return [node];
    return node.kind === "array" ? node.items.flatMap(read) : node.members.flatMap(([, value]) => read(value));
  };
  return read(parseJson(text));
}

test("gives the candidate itself when all are equal", () => {
  fc.assert(
    fc.property(json, fc.integer({ min: 1, max: 5 }), (text, count) =>
      assert.equal(vote(...Array(count).fill(text)), text),
    ),
  );
});

test("takes every leaf from some candidate", () => {
  fc.assert(
    fc.property(fc.array(json, { minLength: 1, maxLength: 5 }), (texts) => {
      const known = new Set(texts.flatMap((text) => scalars(text).map((node) => node.text)));
      for (const { text } of scalars(vote(...texts))) assert.ok(known.has(text), text);
    }),
  );
});

test("follows a clear majority in any order", () => {
  fc.assert(
    fc.property(json, json, json, (text, one, other) => {
      // A value that agrees with the majority's may be written differently, and the first writing is kept.
      const writings = new Map(scalars(text).map((node) => [valueKey(node), node.text]));
      const isRewritten = (node: Scalar) => (writings.get(valueKey(node)) ?? node.text) !== node.text;
      fc.pre(![text, one, other].flatMap(scalars).some(isRewritten));
      const orders = [
        [text, text, text, one, other],
        [one, text, other, text, text],
        [other, one, text, text, text],
      ];
      for (const order of orders) assert.equal(vote(...order), text);
    }),
  );
});

test("gives the same result for any order of candidates with different weights", () => {
  const shape = fc.record({
    a: fc.integer({ min: 0, max: 2 }),
    b: fc.array(fc.boolean(), { maxLength: 2 }),
    c: fc.constantFrom("x", "y", "z"),
  });
  fc.assert(
    fc.property(fc.array(shape, { minLength: 2, maxLength: 5 }), (values) => {
      // Powers of two, so that no two sets of candidates have the same weight.
      const candidates = values.map((value, index) => ({ json: JSON.stringify(value), weight: 2 ** index }));
      assert.equal(voteFields(candidates), voteFields(candidates.toReversed()));
    }),
  );
});

test("lets a decider without a vote settle fields that have no majority", () => {
  const candidates = ['{"a":1,"b":2,"c":3}', '{"a":1,"b":4,"c":5}', '{"a":1,"b":4,"c":6}'].map((json) => ({
    json,
    weight: 1,
  }));
  assert.equal(voteFields(candidates, '{"c":5,"b":2,"a":9,"d":0}'), '{"c":5,"b":4,"a":1}');
  assert.equal(voteFields(candidates, '{"a":1,"b":4,"c":7}'), '{"a":1,"b":4,"c":7}');
  assert.equal(voteFields(candidates, '{"a":1,"b":4,"c":[7]}'), '{"a":1,"b":4,"c":3}');
  assert.throws(() => voteFields([], "{}"), RangeError);
});
