import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { test, vi } from "vitest";
import { noteAccepted, Turns } from "../../src/concurrency/turns.ts";

test("lets work start at once, up to its number in each turn of the event loop", async () => {
  const turns = new Turns<string>(2);
  assert.deepEqual([turns.enter("a"), turns.enter("a")], [undefined, undefined]);
  let started = false;
  const third = turns.enter("a")?.then(() => {
    started = true;
  });
  assert.equal(started, false);
  await third;
  await setImmediate();
  await setImmediate();
  assert.equal(turns.enter("a"), undefined);
});

test("starts the work of keys in turn, and does not count what has become needless", async () => {
  const turns = new Turns<string>(2);
  const log: string[] = [];
  const add = (key: string, name: string, isNeeded = true) =>
    turns.add(key, () => {
      if (isNeeded) log.push(name);
      return isNeeded;
    });
  for (const name of ["a1", "a2", "a3", "a4"]) add("a", name);
  add("b", "gone", false);
  add("b", "b1");
  assert.deepEqual(log, []);
  const seen: number[] = [];
  while (log.length < 5) {
    await setImmediate();
    seen.push(log.length);
  }
  assert.deepEqual(log, ["a1", "a2", "b1", "a3", "a4"]);
  assert.deepEqual(seen, [2, 4, 5]);
});

test("starts more in each turn while more waits than can start in 32 turns", async () => {
  const turns = new Turns<string>(1);
  let started = 0;
  for (let i = 0; i < 320; i++) turns.add("a", () => started++ >= 0);
  await setImmediate();
  assert.equal(started, 10);
  await setImmediate();
  assert.equal(started, 20);
  while (started < 320) await setImmediate();
});

test("starts as many pieces in a turn as take two milliseconds together, within its bounds", async () => {
  const turns = new Turns<string>(2, 16);
  let started = 0;
  /** Adds pieces of a duration, 20 at a time. @returns how many the last turn started */
  const run = async (pieces: number, ms: number) => {
    let latest = 0;
    for (let added = 0; added < pieces; added += 20) {
      for (let i = 0; i < 20; i++)
        turns.add("a", () => {
          started++;
          for (const end = performance.now() + ms; performance.now() < end; );
          return true;
        });
      const before = started;
      await setImmediate();
      latest = started - before;
      while (started % 20 !== 0) await setImmediate();
    }
    return latest;
  };
  assert.equal(await run(20, 0), 2);
  assert.equal(await run(2_000, 0), 16);
  assert.equal(await run(100, 3), 2);
});

test("starts nothing in a turn in which a connection was accepted, for at most 10 ms", async ({ onTestFinished }) => {
  let now = 1_000;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const turns = new Turns<string>(2);
  let started = 0;
  const addAfterConnection = async () => {
    noteAccepted();
    turns.add("a", () => ++started > 0);
    await setImmediate();
  };
  await addAfterConnection();
  assert.equal(started, 1);
  await addAfterConnection();
  await addAfterConnection();
  assert.equal(started, 1);
  now += 10;
  await addAfterConnection();
  assert.equal(started, 3);
  await addAfterConnection();
  assert.equal(started, 3);
  await setImmediate();
  assert.equal(started, 5);
  noteAccepted();
  assert.notEqual(turns.enter("a"), undefined);
});
