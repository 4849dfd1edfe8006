import assert from "node:assert/strict";
import { test } from "vitest";
import { Failure } from "../../src/contract/failure.ts";
import { createShedder, startShedder } from "../../src/overload/shedder.ts";
import { createTelemetry } from "../../src/telemetry/create.ts";
import { until } from "../helpers/until.ts";

const LATE = 100;
const EARLY = 5;

function shedderOf() {
  let shed = 0;
  const shedder = createShedder(50, {
    requestShed() {
      shed += 1;
    },
  });
  /** Sends requests and returns how many were admitted. */
  const send = (workspace: string, count: number) => {
    let admitted = 0;
    for (let i = 0; i < count; i++) {
      try {
        shedder.admit(workspace);
        admitted += 1;
      } catch (error) {
        assert.ok(error instanceof Failure);
        assert.deepEqual([error.kind, error.retryAfterMs], ["overloaded", 1000]);
      }
    }
    return admitted;
  };
  return { shedder, send, shed: () => shed };
}

test("admits everything while the event loop is in time, and after one late window", () => {
  const { shedder, send } = shedderOf();
  assert.equal(send("a", 1000), 1000);
  shedder.endWindow(EARLY);
  assert.equal(send("a", 1000), 1000);
  shedder.endWindow(LATE);
  assert.equal(send("a", 1000), 1000);
});

test("caps the workspace that sends most, not the others, and counts what it refuses", () => {
  const { shedder, send, shed } = shedderOf();
  shedder.endWindow(LATE);
  let admitted = send("large", 1000);
  send("small", 40);
  for (let i = 0; i < 7; i++) {
    shedder.endWindow(LATE);
    const now = send("large", 1000);
    assert.ok(now < admitted && now > 50);
    assert.equal(send("small", 40), 40);
    admitted = now;
  }
  assert.ok(shed() > 3000);
});

test("admits at least fifty requests of each workspace in a window", () => {
  const { shedder, send } = shedderOf();
  for (let i = 0; i < 30; i++) {
    shedder.endWindow(LATE);
    assert.ok(send("a", 80) >= 50 && send("b", 80) >= 50);
  }
  assert.equal(send("c", 80), 50);
});

test("keeps the cap between the bounds, and raises it until nothing is refused", () => {
  const { shedder, send } = shedderOf();
  const sendBoth = (count: number) => {
    send("other", 1);
    return send("a", count);
  };
  shedder.endWindow(LATE);
  sendBoth(100);
  shedder.endWindow(LATE);
  assert.equal(sendBoth(100), 70);
  shedder.endWindow(40);
  assert.equal(sendBoth(100), 70);
  const admitted: number[] = [];
  for (let i = 0; i < 4; i++) {
    shedder.endWindow(EARLY);
    admitted.push(sendBoth(100));
  }
  assert.deepEqual(admitted, [88, 100, 100, 100]);
  for (let i = 0; i < 10; i++) shedder.endWindow(EARLY);
  assert.equal(sendBoth(10_000), 10_000);
});

test("refuses nothing while only one workspace sends requests", () => {
  const { shedder, send } = shedderOf();
  for (let i = 0; i < 10; i++) {
    assert.equal(send("a", 1000), 1000);
    shedder.endWindow(LATE);
  }
});

test("measures the event loop", async (t) => {
  const shedder = startShedder(20, createTelemetry());
  t.onTestFinished(() => shedder.stop());
  const isShed = () => {
    try {
      shedder.admit("b");
      for (let i = 0; i < 100; i++) shedder.admit("a");
      return false;
    } catch {
      return true;
    }
  };
  await until(() => {
    for (const end = performance.now() + 60; performance.now() < end; );
    return isShed();
    // A longer wait between the blocks would lower the mean delay.
  }, 5);
});
