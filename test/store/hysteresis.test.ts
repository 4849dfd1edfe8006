import assert from "node:assert/strict";
import * as fc from "fast-check";
import { test } from "vitest";
import { createHysteresis } from "../../src/store/hysteresis.ts";

const DELAYS = { toFalse: 10, toTrue: 3 };

test("follows a condition when it has lasted, and ignores shorter changes", () => {
  let now = 0;
  const hysteresis = createHysteresis(DELAYS, () => now);
  const step = (ms: number, value?: boolean) => {
    now += ms;
    if (value !== undefined) hysteresis.set(value);
    return hysteresis.value;
  };
  assert.equal(hysteresis.value, true);
  assert.deepEqual([step(1, false), step(9), step(0, true), step(100)], [true, true, true, true]);
  assert.deepEqual([step(0, false), step(9), step(1)], [true, true, false]);
  assert.deepEqual([step(5, true), step(2), step(0, false), step(100)], [false, false, false, false]);
  assert.deepEqual([step(0, true), step(2), step(1)], [false, false, true]);
  // A state that nobody asked for while it lasted counts too.
  hysteresis.set(false);
  now += 10;
  hysteresis.set(true);
  assert.deepEqual([hysteresis.value, step(3)], [false, true]);
});

test("has the value of the condition if it has lasted, else the value before", () => {
  const steps = fc.array(fc.tuple(fc.nat(15), fc.boolean()), { maxLength: 50 });
  fc.assert(
    fc.property(steps, (list) => {
      let now = 0;
      let before = true;
      let [value, since] = [true, Number.NEGATIVE_INFINITY];
      const hysteresis = createHysteresis(DELAYS, () => now);
      for (const [ms, next] of list) {
        now += ms;
        const expected: boolean = now - since >= (value ? DELAYS.toTrue : DELAYS.toFalse) ? value : before;
        assert.equal(hysteresis.value, expected);
        before = expected;
        if (next !== value) [value, since] = [next, now];
        hysteresis.set(next);
      }
    }),
  );
});
