import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { test } from "vitest";
import { TransientMap, TransientSet } from "../../src/concurrency/transient.ts";

const KEY = fc.integer({ min: 0, max: 20 });

test("TransientMap behaves as a Map, however many entries have come and gone", () => {
  const step = fc.record({ deletes: fc.boolean(), key: KEY, value: fc.integer() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 500 }), (steps) => {
      const map = new Map<number, number>();
      const transient = new TransientMap<number, number>();
      for (const { deletes, key, value } of steps) {
        if (deletes) assert.equal(transient.delete(key), map.delete(key));
        else {
          map.set(key, value);
          transient.set(key, value);
        }
        assert.equal(transient.get(key), map.get(key));
        assert.equal(transient.has(key), map.has(key));
      }
      assert.equal(transient.size, map.size);
      assert.deepEqual([...transient.keys()], [...map.keys()]);
      assert.deepEqual([...transient.values()], [...map.values()]);
    }),
  );
});

test("TransientSet behaves as a Set, however many members have come and gone", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ deletes: fc.boolean(), key: KEY }), { maxLength: 500 }), (steps) => {
      const set = new Set<number>();
      const transient = new TransientSet<number>();
      for (const { deletes, key } of steps) {
        if (deletes) assert.equal(transient.delete(key), set.delete(key));
        else {
          set.add(key);
          transient.add(key);
        }
        assert.equal(transient.has(key), set.has(key));
      }
      assert.equal(transient.size, set.size);
      assert.deepEqual([...transient], [...set]);
    }),
  );
});

test("what was removed from a TransientMap does not outlive a collection of the young generation", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { type: "minor" }) => void;
  const kept = (entries: { set(key: number, value: object): unknown; delete(key: number): unknown }) => {
    const change = (key: number) => {
      entries.set(key, new Array(100).fill(key));
      entries.delete(key - 10);
      if (key % 1_000 === 0) collect({ type: "minor" });
    };
    for (let key = 0; key < 100; key++) change(key);
    // The table of the Map is now in the old generation.
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let key = 100; key <= 10_000; key++) change(key);
    for (let times = 0; times < 3; times++) collect({ type: "minor" });
    return process.memoryUsage().heapUsed - before;
  };
  const all = 10_000 * 100 * 8;
  const transient = kept(new TransientMap());
  assert.ok(transient < all / 10, `${transient} of ${all} bytes are kept`);
  // Else V8 has changed, and a TransientMap is no longer needed.
  const usual = kept(new Map());
  assert.ok(usual > all / 2, `a Map keeps ${usual} of ${all} bytes`);
});
