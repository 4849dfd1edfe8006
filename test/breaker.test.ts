import assert from "node:assert/strict";
import { test } from "vitest";
import { createBreaker } from "../src/breaker.ts";

function openBreaker() {
  let now = 0;
  const breaker = createBreaker({ failures: 3, cooldownMs: 100, clock: () => now });
  for (let i = 0; i < 3; i++) {
    assert.equal(breaker.pass(), true);
    breaker.fail();
  }
  return {
    breaker,
    wait: (ms: number) => {
      now += ms;
    },
  };
}

test("opens after consecutive failures and stays open for the cool-down", () => {
  const { breaker, wait } = openBreaker();
  assert.equal(breaker.pass(), false);
  wait(99);
  assert.equal(breaker.pass(), false);
});

test("resets the failure count after a success", () => {
  const breaker = createBreaker({ failures: 2 });
  for (let i = 0; i < 5; i++) {
    breaker.fail();
    breaker.succeed();
  }
  assert.equal(breaker.pass(), true);
});

test("lets one probe through after the cool-down, and closes when the probe succeeds", () => {
  const { breaker, wait } = openBreaker();
  wait(100);
  assert.equal(breaker.pass(), true);
  assert.equal(breaker.pass(), false, "only one probe");
  breaker.succeed();
  assert.equal(breaker.pass(), true);
  assert.equal(breaker.pass(), true);
});

test("stays open for another cool-down when the probe fails", () => {
  const { breaker, wait } = openBreaker();
  wait(100);
  assert.equal(breaker.pass(), true);
  breaker.fail();
  wait(99);
  assert.equal(breaker.pass(), false);
  wait(1);
  assert.equal(breaker.pass(), true);
});

test("allows another probe when a probe ends without a result", () => {
  const { breaker, wait } = openBreaker();
  wait(100);
  assert.equal(breaker.pass(), true);
  breaker.release();
  assert.equal(breaker.pass(), true);
});

test("does not extend the cool-down when an earlier call fails", () => {
  const { breaker, wait } = openBreaker();
  wait(60);
  breaker.fail();
  wait(40);
  assert.equal(breaker.pass(), true);
});
