import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, test, vi } from "vitest";
import { LinkedAbort, NOT_NEEDED, onAbort, pause } from "../../src/concurrency/abort.ts";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

test("aborts a linked signal with its parent's reason when the parent aborts", () => {
  const parent = new AbortController();
  using link = new LinkedAbort(parent.signal);
  assert.equal(link.signal.aborted, false);
  const reason = new Error("caller gone");
  parent.abort(reason);
  assert.equal(link.signal.reason, reason);
});

test("maps the parent's reason", () => {
  const parent = new AbortController();
  using link = new LinkedAbort(parent.signal, ({ reason }) => `mapped ${reason}`);
  parent.abort("gone");
  assert.equal(link.signal.reason, "mapped gone");
});

test("creates an aborted signal when the parent has already aborted", () => {
  const parent = AbortSignal.abort("gone");
  using link = new LinkedAbort(parent);
  assert.equal(link.signal.reason, "gone");
  assert.equal(listeners(parent), 0);
});

test("does not abort the parent, and keeps the first reason", () => {
  const parent = new AbortController();
  using link = new LinkedAbort(parent.signal);
  link.abort("first");
  link.abort("second");
  parent.abort("third");
  assert.equal(link.signal.reason, "first");

  using unlinked = new LinkedAbort(undefined);
  unlinked.abort();
  assert.equal(unlinked.signal.reason, NOT_NEEDED);
});

test("aborts with the timeout's reason", async () => {
  using link = new LinkedAbort(undefined);
  link.abortAfter(1, () => "too late");
  vi.advanceTimersByTime(20);
  assert.equal(link.signal.reason, "too late");
});

test("replaces the first timeout with the second", async () => {
  using link = new LinkedAbort(undefined);
  link.abortAfter(1, () => "first");
  link.abortAfter(10, () => "second");
  vi.advanceTimersByTime(40);
  assert.equal(link.signal.reason, "second");
});

test("aborts on dispose but not on release", () => {
  const disposed = new LinkedAbort(undefined);
  disposed[Symbol.dispose]();
  assert.equal(disposed.signal.reason, NOT_NEEDED);

  const parent = new AbortController();
  const released = new LinkedAbort(parent.signal);
  released.release();
  parent.abort();
  assert.equal(released.signal.aborted, false);
  released.abort("late");
  assert.equal(released.signal.reason, "late");
});

test("removes the parent's listener and the timer after abort, release, dispose or timeout", () => {
  const parent = new AbortController();
  const make = () => {
    const link = new LinkedAbort(parent.signal);
    link.abortAfter(60_000);
    return link;
  };
  const links = [make(), make(), make(), make()] as const;
  assert.equal(listeners(parent.signal), 4);
  assert.equal(vi.getTimerCount(), 4);
  links[0].abort();
  links[1].release();
  links[2][Symbol.dispose]();
  links[3].abortAfter(1);
  vi.advanceTimersByTime(1);
  assert.equal(listeners(parent.signal), 0);
  assert.equal(vi.getTimerCount(), 0);
});

test("starts no timer after an abort or a release", () => {
  for (const end of [(link: LinkedAbort) => link.abort(), (link: LinkedAbort) => link.release()]) {
    const link = new LinkedAbort(undefined);
    end(link);
    link.abortAfter(60_000);
    assert.equal(vi.getTimerCount(), 0);
  }
});

test("onAbort calls its listener once, immediately if the signal has already aborted", () => {
  const parent = new AbortController();
  let calls = 0;
  onAbort(parent.signal, () => calls++);
  assert.equal(calls, 0);
  parent.abort();
  assert.equal(calls, 1);
  onAbort(parent.signal, () => calls++);
  assert.equal(calls, 2);
  assert.equal(listeners(parent.signal), 0);
});

test("onAbort removes its listener, and accepts an undefined signal", () => {
  const parent = new AbortController();
  const stopListening = onAbort(parent.signal, () => assert.fail("called"));
  stopListening();
  assert.equal(listeners(parent.signal), 0);
  parent.abort();
  onAbort(undefined, () => assert.fail("called"))();
});

test("links abort each other without a listener that is left behind", () => {
  const first = new LinkedAbort(undefined);
  const second = new LinkedAbort(first.signal);
  const third = new LinkedAbort(first.signal);
  let heard = 0;
  second.signal.addEventListener("abort", () => heard++);
  third.release();
  first.abort("gone");
  first.abort("again");
  assert.deepEqual([second.signal.reason, third.signal.aborted, heard], ["gone", false, 1]);
  assert.throws(
    () => second.signal.throwIfAborted(),
    (reason) => reason === "gone",
  );
});

test("pauses for a time, and ends with the signal's reason when it aborts", async () => {
  const abort = new LinkedAbort(undefined);
  const whole = pause(10, abort.signal);
  vi.advanceTimersByTime(10);
  await whole;
  const cut = pause(60_000, abort.signal);
  abort.abort(new Error("gone"));
  await assert.rejects(cut, /gone/);
  assert.equal(vi.getTimerCount(), 0);
  await assert.rejects(pause(60_000, abort.signal), /gone/);
});

test("does not call a listener that an earlier one removes", () => {
  const link = new LinkedAbort(undefined);
  const called: string[] = [];
  const second = () => void called.push("second");
  const child = new LinkedAbort(link);
  link.addEventListener("abort", () => {
    called.push("first");
    link.removeEventListener("abort", second);
  });
  link.addEventListener("abort", second);
  link.addEventListener("abort", () => void called.push("third"));
  child.addEventListener("abort", () => void called.push("child"));
  link.abort();
  assert.deepEqual(called, ["child", "first", "third"]);
});
