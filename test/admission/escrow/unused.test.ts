import assert from "node:assert/strict";
import { test } from "vitest";
import { NOTHING } from "../../../src/admission/escrow/exchange.ts";
import { Unused } from "../../../src/admission/escrow/unused.ts";
import { PLENTY } from "../../helpers/replica.ts";

test("has what a request needs until its minute ends, and states the time to that", () => {
  const free = new Unused();
  free.add(PLENTY, NOTHING);
  free.startMinute(60_000, 1_500);
  const ask = { requestId: "q", hold: 10, input: 1 };
  assert.deepEqual([free.has(ask, 1_499), free.msLeft(1_499), free.isOver(1_499)], [true, 1, false]);
  assert.deepEqual([free.has(ask, 1_500), free.msLeft(1_500), free.isOver(1_500)], [false, 0, true]);
  // Credit and concurrent requests do not end with it.
  assert.deepEqual(free.parts, { ...PLENTY, requests: 0, input: 0, output: 0 });
});
