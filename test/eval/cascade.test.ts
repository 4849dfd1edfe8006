import assert from "node:assert/strict";
import { test } from "vitest";
import { cascadePart } from "../../eval/cascade.ts";
import { rowsOf } from "./rows.ts";

test("uses the strong model for questions on which the weak ones disagree", async () => {
  const rows = rowsOf({ one: "AAABBAAAAA", two: "AABABAAAAA", strong: "AAAABAABAA" });
  const part = await cascadePart(rows, { weak: ["one", "two"], strong: "strong", panel: [] });
  assert.equal(part?.rows, 10);
  assert.equal(part?.strong_share, 0.2);
  // Both weak models are wrong on one question, the strong model on two.
  assert.equal(part?.accuracy, 0.9);
  assert.equal(part?.strong_accuracy, 0.8);
});

test("skips questions that a model did not run on, and counts unanswered ones separately", async () => {
  const rows = rowsOf({ one: "AAAA-A", two: "AAB AA", strong: "AAAAA-" });
  const part = await cascadePart(rows, { weak: ["one", "two"], strong: "strong", panel: [] });
  assert.equal(part?.rows, 5);
  assert.equal(part?.all_answered.rows, 3);
  assert.equal(part?.strong_share, 2 / 5);
  assert.equal(part?.strong_accuracy, 4 / 5);
  assert.equal(part?.all_answered.strong_accuracy, 1);
});

test("orders the curve by difficulty where agreement does not decide", async () => {
  const rows = rowsOf({ one: "AAAAABBBBB", two: "AAAAACCCCC", strong: "AAAAAAABBB" });
  const options = { weak: ["one", "two"], strong: "strong", panel: [] };
  const hard = await cascadePart(rows, { ...options, difficulty: ({ id }) => -Number(id.slice(2)) });
  const wrong = await cascadePart(rows, { ...options, difficulty: ({ id }) => Number(id.slice(2)) });
  const random = await cascadePart(rows, options);
  assert.ok(hard?.apgr !== undefined && wrong?.apgr !== undefined && random?.apgr !== undefined);
  assert.ok(hard.apgr > random.apgr && random.apgr > wrong.apgr);
});

test("needs two weak models and answers, and gives a curve only for a better strong model", async () => {
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
