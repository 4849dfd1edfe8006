import assert from "node:assert/strict";
import { test } from "vitest";
import { type CataloguesRow, cataloguesPart } from "../../eval/catalogues.ts";
import { missedByCatalogues } from "../../eval/gates.ts";
import { gradedPairs } from "../../eval/grader.ts";
import { rowsOf } from "./rows.ts";

/** Six models that are right on 90 %, 80 % and so on of 400 questions, not on the same ones. */
const rows = rowsOf(
  Object.fromEntries(
    Array.from({ length: 6 }, (_, model) => [
      `m${model}`,
      Array.from({ length: 400 }, (_, at) => ((at * 7 + model * 3) % 10 <= model ? "BCDEFG"[model] : "A")).join(""),
    ]),
  ),
);
const rater = { rate: () => ({ difficulty: 1, kind: "closed" as const, explain: () => [] }) };

test("serves random catalogues by each effort with given, hidden and learned accuracies", async () => {
  const all = (await cataloguesPart(rows, rater, { seeds: 3 })) ?? [];
  assert.equal(all.length, 12);
  const gain = (accuracies: string) =>
    all.find((row) => row.accuracies === accuracies && row.effort === "auto" && row.tiers === "at random")?.mean_gain ??
    0;
  assert.ok(gain("given") >= gain("hidden"));
  assert.ok(gain("learned") >= gain("hidden"));
  assert.equal(await cataloguesPart(rowsOf({ one: "A" }), rater), undefined);
});

test("a simulated grader prefers the better model in most disagreements", () => {
  const asked = { number: 50, seed: 1, kindOf: () => "closed" as const };
  const [pair] = gradedPairs(rows, ["m0", "m5"], asked);
  assert.deepEqual([pair?.one, pair?.other], ["m0", "m5"]);
  assert.ok((pair?.wins ?? 0) > 2 * (pair?.losses ?? 0));
  // As in the service, only answers that can be compared are graded.
  assert.deepEqual(gradedPairs(rows, ["m0", "m5"], { ...asked, kindOf: () => "prose" }), []);
});

test("names the gates that catalogues miss by more than chance", () => {
  const row = (accuracies: "given" | "learned" | "hidden", mean_gain: number, more: Partial<CataloguesRow> = {}) => ({
    ...{ tiers: "at random", accuracies, effort: "auto" as const, mean_gain, margin: 0.2, worst_gain: mean_gain },
    ...{ over_auto: undefined, over_margin: undefined, calls: 1, best_share: 1, cost_share: 1, ...more },
  });
  const high = (over_auto: number) => row("hidden", -9, { effort: "high", over_auto, over_margin: 0.2 });
  assert.deepEqual(missedByCatalogues("f", [row("given", -0.1), row("learned", -1.1), row("hidden", -9)]), []);
  assert.equal(missedByCatalogues("f", [row("given", -0.3), row("learned", -1.3)]).length, 2);
  assert.deepEqual(missedByCatalogues("mmlu-pro", [row("given", -1.6), row("learned", -2.6)]), []);
  assert.equal(missedByCatalogues("f", [row("given", 0.1, { worst_gain: -4 })]).length, 1);
  assert.deepEqual(missedByCatalogues("f", [high(-0.6)]), []);
  assert.match(missedByCatalogues("f", [high(-0.8)])[0] ?? "", /than auto/);
});
