import assert from "node:assert/strict";
import { test } from "vitest";
import { relevance } from "../../../src/engine/attachments/relevance.ts";

function best(passages: string[], question: string): number {
  const scores = relevance(passages, question);
  return scores.indexOf(Math.max(...scores));
}

test("weighs rare words of the question more than common ones", () => {
  assert.equal(best(["the cat and the dog", "the the the the the", "a walrus in the zoo"], "the walrus"), 2);
});

test("matches words in any case, in the plural and in scripts without spaces", () => {
  assert.equal(best(["nothing here", "INVOICES were paid"], "which invoice?"), 1);
  assert.equal(best(["今天天气很好", "发票的金额是一百元", "他去了北京"], "发票金额"), 1);
  assert.equal(best(["ничего", "Счёт оплачен в Москве"], "счёт в москве"), 1);
});

test("scores 0 for a passage without a word of the question, and for all without a question", () => {
  assert.deepEqual([...relevance(["alpha", "beta"], "gamma")], [0, 0]);
  assert.deepEqual([...relevance(["alpha"], "")], [0]);
  assert.deepEqual([...relevance([], "alpha")], []);
});
