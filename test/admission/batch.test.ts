import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import fc from "fast-check";
import { test } from "vitest";
import { createBatcher } from "../../src/admission/batch.ts";

test("collects items that arrive during a batch into the next one, in order, up to the maximum size", async () => {
  const batches: number[][] = [];
  const double = createBatcher(
    async (items: number[]) => {
      batches.push(items);
      await tick();
      return items.map((item) => item * 2);
    },
    { maxItems: 3, maxWaiting: 100 },
  );
  assert.deepEqual(await Promise.all([1, 2, 3, 4, 5, 6].map((item) => double(item))), [2, 4, 6, 8, 10, 12]);
  assert.deepEqual(batches, [[1], [2, 3, 4], [5, 6]]);
  assert.equal(await double(7), 14);
});

test("fails only the items of the batch that fails", async () => {
  const run = createBatcher(
    async (items: string[]) => {
      await tick();
      if (items.includes("bad")) throw new Error("no");
      return items;
    },
    { maxItems: 2, maxWaiting: 100 },
  );
  const results = await Promise.allSettled(["a", "bad", "b", "c", "d"].map((item) => run(item)));
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "rejected", "fulfilled", "fulfilled"],
  );
});

test("refuses an item at once when the maximum number of items is waiting", async () => {
  const gate = Promise.withResolvers<void>();
  const run = createBatcher(
    async (items: number[]) => {
      await gate.promise;
      return items;
    },
    { maxItems: 10, maxWaiting: 2 },
  );
  const pending = [run(0), run(1), run(2)];
  await assert.rejects(run(3), { kind: "overloaded" });
  gate.resolve();
  assert.deepEqual(await Promise.all(pending), [0, 1, 2]);
});

test("gives every item its own result for any timing of arrivals", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(5), { maxLength: 40 }),
      fc.integer({ min: 1, max: 8 }),
      async (pauses, maxItems) => {
        const run = createBatcher(
          async (items: number[]) => {
            await tick();
            return items.map(String);
          },
          { maxItems, maxWaiting: 1_000 },
        );
        const results: Promise<string>[] = [];
        for (const [i, pause] of pauses.entries()) {
          results.push(run(i));
          if (pause === 0) await tick();
        }
        assert.deepEqual(
          await Promise.all(results),
          pauses.map((_, i) => String(i)),
        );
      },
    ),
    { numRuns: 30 },
  );
});

test("ends the items of a large batch in several turns of the event loop, equal ones in turn with others", async () => {
  const run = createBatcher(async (items: string[]) => items, { maxItems: 200, maxWaiting: 200 });
  // The first item has a batch alone.
  await run("a");
  const ended: string[] = [];
  const items = [...Array<string>(100).fill("a"), "b"];
  const ends = Promise.all(items.map(async (item) => ended.push(await run(item))));
  let most = 0;
  for (let last = 0; ended.length < items.length; last = ended.length) {
    await tick();
    most = Math.max(most, ended.length - last);
  }
  await ends;
  assert.ok(most < 20, `${most} in one turn`);
  assert.ok(ended.indexOf("b") < 20, `after ${ended.indexOf("b")} others`);
});
