import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { createAttempts } from "../../../src/admin/sign-in/attempts.ts";
import { Failure } from "../../../src/contract/failure.ts";

test("allows ten failed attempts at once, then one every six seconds, and states the exact wait", () => {
  let now = 1_000_000;
  const attempts = createAttempts(() => now);
  for (let i = 0; i < 10; i++) attempts.fail("a");
  const refusal = () => {
    try {
      attempts.fail("a");
    } catch (error) {
      assert.ok(error instanceof Failure);
      assert.equal(error.kind, "rate_limited");
      assert.equal(error.limit, "sign_in_attempts");
      return error.retryAfterMs ?? 0;
    }
    return assert.fail("the attempt was allowed");
  };
  assert.equal(refusal(), 6_000);
  attempts.fail("b");
  now += 5_999;
  assert.equal(refusal(), 1);
  now += 1;
  attempts.fail("a");
  assert.equal(refusal(), 6_000);
});

test("never allows one source more than ten attempts and one every six seconds, for any order of attempts", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ source: fc.constantFrom("a", "b", "c"), wait: fc.nat(20_000) })), (tries) => {
      let now = 0;
      const attempts = createAttempts(() => now);
      const passed = new Map<string, number>();
      for (const { source, wait } of tries) {
        now += wait;
        try {
          attempts.fail(source);
          passed.set(source, (passed.get(source) ?? 0) + 1);
        } catch {}
        assert.ok((passed.get(source) ?? 0) <= 10 + now / 6_000);
      }
    }),
  );
});

test("bounds its memory: forgets the sources with the oldest attempts", () => {
  const attempts = createAttempts(() => 0);
  for (let i = 0; i < 10; i++) attempts.fail("first");
  for (let i = 0; i < 10_000; i++) attempts.fail(`flood ${i}`);
  attempts.fail("first");
});
