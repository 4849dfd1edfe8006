import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LinkedAbort, NOT_NEEDED, onAbort } from "../src/abort.ts";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

test("a linked signal aborts with its parent and gets the parent's reason", () => {
  const parent = new AbortController();
  using link = new LinkedAbort(parent.signal);
  assert.equal(link.signal.aborted, false);
  const reason = new Error("caller gone");
  parent.abort(reason);
  assert.equal(link.signal.reason, reason);
});

test("a linked signal can replace the parent's reason", () => {
  const parent = new AbortController();
  using link = new LinkedAbort(parent.signal, ({ reason }) => `mapped ${reason}`);
  parent.abort("gone");
  assert.equal(link.signal.reason, "mapped gone");
});

test("a linked signal is aborted from the start when its parent already is", () => {
  const parent = AbortSignal.abort("gone");
  using link = new LinkedAbort(parent);
  assert.equal(link.signal.reason, "gone");
  assert.equal(listeners(parent), 0);
});

test("an abort of the linked signal leaves the parent alone, and the first reason stays", () => {
  const parent = new AbortController();
  using link = new LinkedAbort(parent.signal);
  link.abort("first");
  link.abort("second");
  parent.abort("third");
  assert.equal(link.signal.reason, "first");

  using plain = new LinkedAbort(undefined);
  plain.abort();
  assert.equal(plain.signal.reason, NOT_NEEDED);
});

test("the timeout aborts with its reason", async () => {
  using link = new LinkedAbort(undefined);
  link.abortAfter(1, () => "too late");
  await sleep(20);
  assert.equal(link.signal.reason, "too late");
});

test("a second timeout replaces the first", async () => {
  using link = new LinkedAbort(undefined);
  link.abortAfter(1, () => "first");
  link.abortAfter(10, () => "second");
  await sleep(40);
  assert.equal(link.signal.reason, "second");
});

test("disposing aborts; releasing does not", () => {
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

test("no listener stays on the parent and no timer runs after abort, release, dispose or timeout", async () => {
  const parent = new AbortController();
  const before = timers();
  const make = () => {
    const link = new LinkedAbort(parent.signal);
    link.abortAfter(60_000);
    return link;
  };
  const links = [make(), make(), make(), make()] as const;
  assert.equal(listeners(parent.signal), 4);
  assert.equal(timers(), before + 4);
  links[0].abort();
  links[1].release();
  links[2][Symbol.dispose]();
  links[3].abortAfter(1);
  await sleep(20);
  assert.equal(listeners(parent.signal), 0);
  assert.equal(timers(), before);
});

test("no timer starts after an abort or a release", () => {
  const before = timers();
  for (const end of [(link: LinkedAbort) => link.abort(), (link: LinkedAbort) => link.release()]) {
    const link = new LinkedAbort(undefined);
    end(link);
    link.abortAfter(60_000);
    assert.equal(timers(), before);
  }
});

test("onAbort calls its listener once, at once if the signal has already aborted", () => {
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

test("onAbort removes its listener, and accepts no signal", () => {
  const parent = new AbortController();
  const stopListening = onAbort(parent.signal, () => assert.fail("called"));
  stopListening();
  assert.equal(listeners(parent.signal), 0);
  parent.abort();
  onAbort(undefined, () => assert.fail("called"))();
});
