import assert from "node:assert/strict";
import { test } from "vitest";
import { DemandMeter } from "../../../src/admission/escrow/demand.ts";

/** What is expected after requests at these times, at the last one. */
function after(...times: readonly number[]) {
  const meter = new DemandMeter();
  for (const now of times) meter.admitted(10, 4, now);
  return meter.read(times.at(-1) ?? 0);
}

test("expects the requests of 80 seconds, at most 16, when they come at most ten seconds apart", () => {
  const mean = { credit: 10, input: 4, output: 1 };
  assert.deepEqual(after(0, 10_000), { n: 8, ...mean, isSlow: true });
  assert.deepEqual(after(0, 10_001), { n: 0, ...mean, isSlow: false });
  assert.equal(after(0, 4_000).n, 16);
  // Further requests shorten the time in which the next one is expected.
  assert.equal(after(0, 10_000, 10_001).n, 12);
});

test("counts as used now and then when no request is expected to come for two seconds", () => {
  const third = 2_000 / 3;
  assert.deepEqual(
    [third, third + 1].map((gap) => after(0, gap).isSlow),
    [false, true],
  );
});
