import assert from "node:assert/strict";
import { test } from "vitest";
import { missedGates } from "../../eval/gates.ts";
import { servedPart } from "../../eval/served.ts";
import { rowsOf } from "./rows.ts";

/** Rates every prompt as the same difficulty. */
const rater = (difficulty: number) => ({
  rate: () => ({ difficulty, kind: "closed" as const, explain: () => [] }),
});
const choice = { weak: ["one", "two"], strong: "strong", panel: [] };

test("serves each effort through the level, the plan and the fusion of the service", async () => {
  const rows = rowsOf({ one: "AABBA", two: "AAABA", strong: "AAAAA" });
  const served = new Map((await servedPart(rows, choice, rater(1)))?.map((row) => [row.served, row]));
  assert.equal(served.get("low")?.accuracy, 3 / 5);
  assert.deepEqual([served.get("low")?.strong_share, served.get("low")?.calls], [0, 1]);
  // The fast models disagree on one question and are both wrong on another.
  assert.deepEqual([served.get("medium")?.accuracy, served.get("medium")?.strong_share], [4 / 5, 1 / 5]);
  assert.equal(served.get("high")?.accuracy, 1);
  assert.equal(served.get("strong")?.random_mix, 1);
  assert.deepEqual([...served.keys()].slice(4), ["cascade for all", "one", "two", "strong"]);
});

test("serves questions that no model answered, and files without a strong model", async () => {
  const blank = await servedPart(rowsOf({ one: "-", two: "-", strong: "-" }), choice, rater(0));
  assert.equal(blank?.[0]?.accuracy, 0);
  assert.equal(await servedPart(rowsOf({ one: "A" }), { ...choice, strong: undefined }, rater(0)), undefined);
});

test("names the gates that a file misses", () => {
  const row = (accuracy: number, strong_share: number) => ({
    ...{ served: "auto", accuracy, strong_share, calls: 1, cost_share: 1, random_mix: 0, over_strong: "" },
  });
  assert.deepEqual(missedGates("gsm8k", [row(0.97, 0.09)]), []);
  assert.equal(missedGates("gsm8k", [row(0.97, 0.11)]).length, 1);
  assert.match(missedGates("gsm8k", [row(0.9, 0.09)])[0] ?? "", /gsm8k misses a gate.*\.965/);
  assert.deepEqual(missedGates("another", [row(0, 1)]), []);
});
