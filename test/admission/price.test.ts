import assert from "node:assert/strict";
import { test } from "vitest";
import { isCharged, maxPriceOf } from "../../src/admission/price.ts";
import { FAILURES, type FailureKind } from "../../src/contract/failure.ts";

test("charges complete answers, and streams whose caller left", () => {
  assert.equal(isCharged("ok", false), true);
  assert.equal(isCharged("ok", true), true);
  assert.equal(isCharged("caller_gone", true), true);
  assert.equal(isCharged("caller_gone", false), false);
  for (const outcome of ["cut_short", ...(Object.keys(FAILURES) as FailureKind[])] as const) {
    assert.equal(isCharged(outcome, true), false, outcome);
    assert.equal(isCharged(outcome, false), false, outcome);
  }
});

test("computes the highest price with the higher of the two input rates", () => {
  assert.equal(maxPriceOf({ input: 2, cached: 1, output: 3 }, 10, 5), 35n);
  assert.equal(maxPriceOf({ input: 1, cached: 2, output: 3 }, 10, 5), 35n);
});
