import assert from "node:assert/strict";
import { test } from "vitest";
import { draftsRecord } from "../../src/outcomes/drafts.ts";

const ID = `gen_${"0".repeat(32)}`;
const answer = {
  generation: ID,
  kind: "closed",
  shape: "text",
  text: "Answer: 4",
  model: "m",
  drafted: undefined,
  fingerprintOf: (name: string) => `f-${name}`,
} as const;
const draft = (model: string, canonical?: string) => ({ model, canonical });

test("groups drafts by their answers, and adds the model that answered", () => {
  const drafted = { drafts: [draft("a", "5"), draft("b", "4"), draft("c")], chosen: undefined };
  const record = draftsRecord({ ...answer, drafted });
  assert.deepEqual([record?.f, record?.a, record?.g.length], ["closed", 1, 2]);
  assert.deepEqual(record?.d, [
    ["m", "f-m", 1],
    ["a", "f-a", 0],
    ["b", "f-b", 1],
    ["c", "f-c", null],
  ]);
  // A judge that agrees with its own draft counts once, one that does not counts for both.
  const own = (canonical: string) =>
    draftsRecord({ ...answer, drafted: { drafts: [draft("m", canonical)], chosen: undefined } });
  assert.equal(own("4")?.d.length, 1);
  assert.equal(own("5")?.d.length, 2);
  const settled = { drafts: [draft("a", "4"), draft("m", "4")], chosen: 1 };
  assert.equal(draftsRecord({ ...answer, drafted: settled })?.d.length, 2);
});

test("keeps nothing of prose that one model wrote, and no answers of prose that several drafted", () => {
  assert.equal(draftsRecord({ ...answer, kind: "prose" }), undefined);
  const drafts = [draft("a", "One text"), draft("b", "Another text")];
  assert.deepEqual(draftsRecord({ ...answer, kind: "prose", drafted: { drafts, chosen: undefined } }), {
    ...{ a: 0, g: [null] },
    d: [
      ["m", "f-m", 0],
      ["a", "f-a", null],
      ["b", "f-b", null],
    ],
  });
});

test("is small, whatever the names", () => {
  const long = (n: number) => `${n}-${"é".repeat(40)}`;
  const drafts = [1, 2, 3, 4, 5].map((n) => draft(long(n), `${n}`));
  const record = draftsRecord({ ...answer, drafted: { drafts, chosen: undefined } });
  assert.ok(record && record.d.length >= 1 && record.d.length < 6);
  assert.deepEqual(record.d[0], ["m", "f-m", record.a]);
  assert.ok(Buffer.byteLength(JSON.stringify(record)) <= 300);
  const usual = ["gpt-4o-mini", "gpt-4o", "claude-haiku-4-5", "claude-sonnet-4-5", "gemini-2.5-flash"];
  const five = draftsRecord({
    ...answer,
    drafted: { drafts: usual.map((name, n) => draft(name, `${n % 3}`)), chosen: 0 },
    fingerprintOf: () => "0123abcd",
  });
  assert.equal(five?.d.length, 5);
});
