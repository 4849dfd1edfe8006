import assert from "node:assert/strict";
import { test } from "vitest";
import { createBreaker } from "../src/breaker.ts";

function broken() {
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

test("a circuit opens after failures in a row and stays open for the cool-down", () => {
  const { breaker, wait } = broken();
  assert.equal(breaker.pass(), false);
  wait(99);
  assert.equal(breaker.pass(), false);
});

test("a success in between starts the count anew", () => {
  const breaker = createBreaker({ failures: 2 });
  for (let i = 0; i < 5; i++) {
    breaker.fail();
    breaker.succeed();
  }
  assert.equal(breaker.pass(), true);
});

test("after the cool-down one call probes; its success closes the circuit", () => {
  const { breaker, wait } = broken();
  wait(100);
  assert.equal(breaker.pass(), true);
  assert.equal(breaker.pass(), false, "only one");
  breaker.succeed();
  assert.equal(breaker.pass(), true);
  assert.equal(breaker.pass(), true);
});

test("a failed probe keeps the circuit open for another cool-down", () => {
  const { breaker, wait } = broken();
  wait(100);
  assert.equal(breaker.pass(), true);
  breaker.fail();
  wait(99);
  assert.equal(breaker.pass(), false);
  wait(1);
  assert.equal(breaker.pass(), true);
});

test("a probe that says nothing leaves the place to the next one", () => {
  const { breaker, wait } = broken();
  wait(100);
  assert.equal(breaker.pass(), true);
  breaker.release();
  assert.equal(breaker.pass(), true);
});

test("calls that began before the circuit opened do not prolong it", () => {
  const { breaker, wait } = broken();
  wait(60);
  breaker.fail();
  wait(40);
  assert.equal(breaker.pass(), true);
});
