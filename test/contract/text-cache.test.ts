import assert from "node:assert/strict";
import { test } from "vitest";
import { TextCache } from "../../src/contract/text-cache.ts";
import { textsHeld } from "../helpers/held.ts";

test("makes a value once for each text, and forgets the least recently used", () => {
  const cache = new TextCache<string>({ entries: 2, length: 100 });
  const made: string[] = [];
  const get = (text: string) =>
    cache.get(text, (own) => {
      made.push(own);
      return own.toUpperCase();
    });
  assert.deepEqual(["a", "b", "a", "c"].map(get), ["A", "B", "A", "C"]);
  assert.deepEqual([get("a"), get("c"), get("b")], ["A", "C", "B"]);
  assert.deepEqual(made, ["a", "b", "c", "b"]);
});

test("keeps a bounded length of texts, and forgets none of them for a longer one", () => {
  const cache = new TextCache<number>({ entries: 10, length: 100 });
  let made = 0;
  const get = (text: string) => {
    return cache.get(text, (own) => {
      made++;
      return own.length;
    });
  };
  const [first, second] = ["a".repeat(60), "b".repeat(60)];
  for (const text of [first, second, second, first]) assert.equal(get(text), 60);
  assert.equal(made, 3);
  assert.equal(get("c".repeat(101)), 101);
  assert.equal(get(first), 60);
  assert.equal(made, 4);
});

test("keeps nothing of a text for which no value can be made", () => {
  const cache = new TextCache<number>({ entries: 2, length: 100 });
  const fail = () => {
    throw new Error("no value");
  };
  assert.throws(() => cache.get("a", fail), /no value/);
  assert.equal(
    cache.get("a", () => 1),
    1,
  );
});

test("does not hold the texts that its keys and values were cut out of", () => {
  const cache = new TextCache<string>({ entries: 1_000, length: 100_000 });
  const held = textsHeld(
    (i) => `a key of some length, ${i}`,
    (part) => cache.get(part, (own) => own.slice(2)),
  );
  assert.ok(held <= 2, `${held}`);
});
