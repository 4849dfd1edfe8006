import assert from "node:assert/strict";
import { test } from "vitest";
import { repeat } from "../../src/concurrency/repeat.ts";

/** A wait that no test outlasts, in milliseconds. */
const LONG_MS = 1_000_000;

/** A task whose runs begin and end when the test says so. */
function scripted() {
  let begun = Promise.withResolvers<{ end(): void; signal: AbortSignal }>();
  let running = 0;
  return {
    async run(signal: AbortSignal): Promise<void> {
      assert.equal(++running, 1);
      const { promise, resolve } = Promise.withResolvers<void>();
      begun.resolve({ end: resolve, signal });
      await promise;
      running--;
    },
    /** Resolves when the next run has begun. */
    async next() {
      const found = await begun.promise;
      begun = Promise.withResolvers();
      return found;
    },
    get running() {
      return running;
    },
  };
}

test("runs at once, after each wait, and no more when it is stopped", async () => {
  const task = scripted();
  const repetition = repeat(task.run, 1);
  assert.equal(task.running, 1);
  for (let i = 0; i < 3; i++) (await task.next()).end();
  const { end, signal } = await task.next();
  let isStopped = false;
  const stopped = repetition.stop().then(() => {
    isStopped = true;
  });
  assert.deepEqual([signal.aborted, isStopped], [true, false]);
  end();
  await stopped;
  assert.equal(task.running, 0);
});

test("runs sooner when it is told to, once more after a run under way", async () => {
  const task = scripted();
  const repetition = repeat(task.run, LONG_MS);
  const first = await task.next();
  repetition.soon();
  repetition.soon();
  first.end();
  (await task.next()).end();
  await repetition.stop();
  assert.equal(task.running, 0);
});

test("waits first where it is asked to", async () => {
  const task = scripted();
  const repetition = repeat(task.run, LONG_MS, { waitsFirst: true });
  assert.equal(task.running, 0);
  repetition.soon();
  (await task.next()).end();
  await repetition.stop();
  const unused = repeat(task.run, LONG_MS, { waitsFirst: true });
  await unused.stop();
  assert.equal(task.running, 0);
});
