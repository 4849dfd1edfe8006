import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { CallerGone, CutShort } from "../../src/contract/endings.ts";
import { Failure } from "../../src/contract/failure.ts";
import { InFlight } from "../../src/generate/in-flight.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

const NEVER = new AbortController().signal;

function stopClock(t: Lifetime) {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  t.onTestFinished(() => void vi.useRealTimers());
}

test("ends a request when its caller leaves, also before it has begun", () => {
  const inFlight = new InFlight();
  const caller = new AbortController();
  using running = inFlight.begin(caller.signal);
  assert.equal(running.signal.aborted, false);
  caller.abort();
  assert.ok(running.signal.reason instanceof CallerGone);
  using late = inFlight.begin(caller.signal);
  assert.ok(late.signal.reason instanceof CallerGone);
});

test("cuts a request short at its deadline and keeps the first reason", (t) => {
  stopClock(t);
  const inFlight = new InFlight();
  const caller = new AbortController();
  using running = inFlight.begin(caller.signal);
  running.limit(100);
  vi.advanceTimersByTime(99);
  assert.equal(running.signal.aborted, false);
  vi.advanceTimersByTime(1);
  caller.abort();
  const { reason } = running.signal;
  assert.ok(reason instanceof CutShort);
  assert.equal(reason.why, "deadline");
});

test("removes timer and listener of a request that has ended", (t) => {
  stopClock(t);
  const inFlight = new InFlight();
  const caller = new AbortController();
  {
    using running = inFlight.begin(caller.signal);
    running.limit(100);
    assert.equal(inFlight.count, 1);
    t.onTestFinished(() => assert.equal(running.signal.aborted, false));
  }
  assert.equal(inFlight.count, 0);
  vi.advanceTimersByTime(1_000);
  caller.abort();
});

test("refuses new requests while draining, waits for running ones, then cuts them short", async (t) => {
  stopClock(t);
  const inFlight = new InFlight();
  const quick = inFlight.begin(NEVER);
  const slow = inFlight.begin(NEVER);
  let drained = false;
  const end = inFlight.drain(1_000).then(() => {
    drained = true;
  });
  assert.equal(inFlight.draining, true);
  assert.throws(
    () => inFlight.begin(NEVER),
    (error) => error instanceof Failure && error.kind === "overloaded" && error.retryAfterMs === 1_000,
  );
  quick[Symbol.dispose]();
  vi.advanceTimersByTime(999);
  assert.equal(slow.signal.aborted, false);
  vi.advanceTimersByTime(1);
  assert.ok(slow.signal.reason instanceof CutShort && slow.signal.reason.why === "drain");
  await Promise.resolve();
  assert.equal(drained, false);
  slow[Symbol.dispose]();
  await end;
});

test("ends a drain at once when nothing runs, and does not wait for requests that cannot end", async (t) => {
  stopClock(t);
  await new InFlight().drain(60_000);
  const inFlight = new InFlight();
  inFlight.begin(NEVER);
  const end = inFlight.drain(1_000);
  vi.advanceTimersByTime(2_000);
  await end;
});
