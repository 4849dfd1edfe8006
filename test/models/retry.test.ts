import assert from "node:assert/strict";
import { test } from "vitest";
import { ModelError } from "../../src/models/port/model-error.ts";
import { Retries } from "../../src/models/retry.ts";

const failure = (retryAfterMs?: number, retryable = true) =>
  new ModelError("m", { status: 429, retryable, retryAfterMs });

test("waits as long as the vendor asks for", () => {
  assert.equal(new Retries({}, 60_000).next(failure(1_200)), 1_200);
});

test("waits for a second at most where another model can take over", () => {
  assert.equal(new Retries({}, 60_000, true).next(failure(1_000)), 1_000);
  assert.equal(new Retries({}, 60_000, true).next(failure(1_001)), undefined);
  assert.equal(new Retries({ maxWaitMs: 500 }, 60_000, true).next(failure(501)), undefined);
});

test("without a hint, the random wait doubles up to its maximum", () => {
  const retries = new Retries({ retries: 4, backoffMs: 100, maxWaitMs: 300, random: () => 0.5 }, 60_000);
  const waits = [1, 2, 3, 4].map(() => retries.next(failure()));
  assert.deepEqual(waits, [50, 100, 150, 150]);
});

test("stops after the number of retries", () => {
  const retries = new Retries({ random: () => 0 }, 60_000);
  assert.deepEqual([retries.next(failure()), retries.next(failure()), retries.next(failure())], [0, 0, undefined]);
});

test("does not retry a failure that would repeat, too long a wait, or after the window", () => {
  assert.equal(new Retries({}, 60_000).next(failure(0, false)), undefined);
  assert.equal(new Retries({}, 60_000).next(failure(5_001)), undefined);
  assert.equal(new Retries({}, 1_000).next(failure(2_000)), undefined);
});
