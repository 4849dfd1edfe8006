import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { fitAccuracies, type PairCount } from "../../src/learning/fit.ts";

const equal = ["a", "b", "c"].map((name) => ({ name, accuracy: 0.6 }));
const accuracies = (priors: typeof equal, ...pairs: PairCount[]) => fitAccuracies(priors, pairs);
const pair = (one: string, other: string, wins: number, losses: number): PairCount => ({ one, other, wins, losses });

test("without counts each model keeps its prior", () => {
  for (const accuracy of accuracies(equal).values()) assert.ok(Math.abs(accuracy - 0.6) < 1e-9);
});

test("more wins give more accuracy, shrunk to the prior", () => {
  const few = accuracies(equal, pair("a", "b", 1, 3));
  const many = accuracies(equal, pair("a", "b", 10, 30));
  assert.ok((few.get("b") ?? 0) > (few.get("a") ?? 0));
  assert.ok((many.get("b") ?? 0) - (many.get("a") ?? 0) > (few.get("b") ?? 0) - (few.get("a") ?? 0));
});

test("models of different priors change their order only with z of 2 or more", () => {
  const priors = [
    { name: "strong", accuracy: 0.7 },
    { name: "fast", accuracy: 0.5 },
  ];
  // z = 7 / √21 = 1.5 and 12 / √24 = 2.4.
  const held = accuracies(priors, pair("fast", "strong", 14, 7));
  assert.equal(held.get("fast"), held.get("strong"));
  const changed = accuracies(priors, pair("fast", "strong", 18, 6));
  assert.ok((changed.get("fast") ?? 0) > (changed.get("strong") ?? 0));
});

test("gives each model an accuracy from 0 to 1, whatever the counts", () => {
  const counts = fc.nat({ max: 10_000 });
  fc.assert(
    fc.property(counts, counts, counts, counts, counts, counts, (a, b, c, d, e, f) => {
      const fitted = accuracies(
        equal,
        pair("a", "b", a, b),
        pair("b", "c", c, d),
        pair("c", "a", e, f),
        pair("a", "x", 9, 0),
      );
      assert.deepEqual([...fitted.keys()].sort(), ["a", "b", "c"]);
      for (const accuracy of fitted.values()) assert.ok(accuracy > 0 && accuracy < 1);
    }),
  );
});
