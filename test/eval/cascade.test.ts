import assert from "node:assert/strict";
import { test } from "vitest";
import { cascadePart } from "../../eval/cascade.ts";
import { rowsOf } from "./rows.ts";

test("the strong model answers what the weak ones disagree on", async () => {
  const rows = rowsOf({ one: "AAABBAAAAA", two: "AABABAAAAA", strong: "AAAABAABAA" });
  const part = await cascadePart(rows, { weak: ["one", "two"], strong: "strong", panel: [] });
  assert.equal(part?.rows, 10);
  assert.equal(part?.strong_share, 0.2);
  // Both weak ones are wrong on one question; the strong one on two.
  assert.equal(part?.accuracy, 0.9);
  assert.equal(part?.strong_accuracy, 0.8);
});

test("questions that a model never ran on do not count, and those without an answer not among the answered", async () => {
  const rows = rowsOf({ one: "AAAA-A", two: "AAB AA", strong: "AAAAA-" });
  const part = await cascadePart(rows, { weak: ["one", "two"], strong: "strong", panel: [] });
  assert.equal(part?.rows, 5);
  assert.equal(part?.all_answered.rows, 3);
  assert.equal(part?.strong_share, 2 / 5);
  assert.equal(part?.strong_accuracy, 4 / 5);
  assert.equal(part?.all_answered.strong_accuracy, 1);
});

test("difficulty orders the curve where agreement does not", async () => {
  const rows = rowsOf({ one: "AAAAABBBBB", two: "AAAAACCCCC", strong: "AAAAAAABBB" });
  const options = { weak: ["one", "two"], strong: "strong", panel: [] };
  const hard = await cascadePart(rows, { ...options, difficulty: ({ id }) => -Number(id.slice(2)) });
  const wrong = await cascadePart(rows, { ...options, difficulty: ({ id }) => Number(id.slice(2)) });
  const random = await cascadePart(rows, options);
  assert.ok(hard?.apgr !== undefined && wrong?.apgr !== undefined && random?.apgr !== undefined);
  assert.ok(hard.apgr > random.apgr && random.apgr > wrong.apgr);
});

test("there is no part without two weak models or without answers, and no curve where the strong model is no better", async () => {
  const rows = rowsOf({ one: "----", two: "AAAA", strong: "BBBB" });
  assert.equal(await cascadePart(rows, { weak: ["two"], strong: "strong", panel: [] }), undefined);
  assert.equal(await cascadePart(rows, { weak: ["one", "two"], strong: "strong", panel: [] }), undefined);
  assert.equal(await cascadePart(rows, { weak: ["nobody", "two"], strong: "strong", panel: [] }), undefined);
  assert.equal(await cascadePart([], { weak: ["one", "two"], strong: "strong", panel: [] }), undefined);
  const worse = await cascadePart(rowsOf({ one: "AB", two: "AA", strong: "BB" }), {
    weak: ["one", "two"],
    strong: "strong",
    panel: [],
  });
  assert.equal(worse && "apgr" in worse, false);
});
