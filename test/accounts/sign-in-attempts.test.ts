import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { createAttempts } from "../../src/accounts/sign-in-attempts.ts";
import { Failure } from "../../src/failure.ts";

test("allows ten attempts at once, then one every six seconds, and states the exact wait", () => {
  let now = 1_000_000;
  const attempts = createAttempts(() => now);
  for (let i = 0; i < 10; i++) attempts.take("a", `other ${i}`);
  const refusal = () => {
    try {
      attempts.take("b", "a");
    } catch (error) {
      assert.ok(error instanceof Failure);
      assert.equal(error.kind, "rate_limited");
      assert.equal(error.limit, "sign_in_attempts");
      return error.retryAfterMs ?? 0;
    }
    return assert.fail("the attempt was allowed");
  };
  assert.equal(refusal(), 6_000);
  now += 5_999;
  assert.equal(refusal(), 1);
  now += 1;
  attempts.take("b", "a");
  assert.equal(refusal(), 6_000);
});

test("does not count an attempt that succeeded", () => {
  const attempts = createAttempts(() => 0);
  for (let i = 0; i < 100; i++) attempts.take("a", "b")();
});

test("never allows one name more than ten attempts and one every six seconds, for any order of attempts", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ name: fc.constantFrom("a", "b", "c"), wait: fc.nat(20_000) })), (tries) => {
      let now = 0;
      const attempts = createAttempts(() => now);
      const passed = new Map<string, number>();
      for (const { name, wait } of tries) {
        now += wait;
        try {
          attempts.take(name);
          passed.set(name, (passed.get(name) ?? 0) + 1);
        } catch {}
        assert.ok((passed.get(name) ?? 0) <= 10 + now / 6_000);
      }
    }),
  );
});

test("bounds its memory: forgets the names with the oldest attempts", () => {
  const attempts = createAttempts(() => 0);
  for (let i = 0; i < 10; i++) attempts.take("first");
  for (let i = 0; i < 10_000; i++) attempts.take(`flood ${i}`);
  attempts.take("first");
});
