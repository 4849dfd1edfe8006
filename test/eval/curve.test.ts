import assert from "node:assert/strict";
import { test } from "vitest";
import { curve, type Point } from "../../eval/curve.ts";

const points = (strong: string, rank: (index: number) => number[]): Point[] =>
  [...strong].map((each, index) => ({ weak: 0, strong: Number(each), rank: rank(index) }));

test("a random order closes half of the gap at half of the calls", () => {
  assert.deepEqual(curve(points("0110", () => [0])), { apgr: 0.5, cpt50: 0.5, cpt80: 0.8 });
});

test("a perfect order closes the gap early, and its reverse late", () => {
  const good = curve(points("1100", (index) => [-index]));
  assert.deepEqual(good, { apgr: 0.75, cpt50: 0.25, cpt80: 0.4 });
  assert.equal(curve(points("1100", (index) => [index]))?.apgr, 0.25);
});

test("breaks ties by the later figures of a rank", () => {
  assert.equal(curve(points("1100", (index) => [0, -index]))?.apgr, 0.75);
});

test("returns no curve without a gap", () => {
  assert.equal(curve([]), undefined);
  assert.equal(curve(points("00", () => [0])), undefined);
});
