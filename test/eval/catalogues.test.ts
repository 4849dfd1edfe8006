import assert from "node:assert/strict";
import { test } from "vitest";
import { cataloguesPart } from "../../eval/catalogues.ts";
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
  const all = (await cataloguesPart(rows, rater)) ?? [];
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

test("names the gates that catalogues miss", () => {
  const row = (
    accuracies: "given" | "learned",
    effort: "auto" | "high",
    mean_gain: number,
    worst_gain = mean_gain,
  ) => ({
    ...{ tiers: "at random", accuracies, effort, mean_gain, worst_gain, calls: 1, best_share: 1, cost_share: 1 },
  });
  assert.deepEqual(missedByCatalogues("f", [row("given", "auto", 0.1), row("given", "high", -0.3)]), []);
  assert.equal(missedByCatalogues("f", [row("given", "auto", 0.1, -4)]).length, 1);
  assert.match(missedByCatalogues("f", [row("given", "auto", 0.2), row("given", "high", -0.4)])[0] ?? "", /than auto/);
});
