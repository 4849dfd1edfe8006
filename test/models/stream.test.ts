import assert from "node:assert/strict";
import { test } from "vitest";
import { fromFirstText, type Part, toStream } from "../../src/models/stream.ts";
import { collect, finish, parts } from "./fake-model.ts";

async function* generate(list: readonly Part[]): AsyncGenerator<Part> {
  yield* list;
}

test("a generator as a stream gives the same parts to a reader and to for await", async () => {
  const list = parts("a", "b");
  assert.deepEqual(await collect(toStream(generate(list))), list);
  const reader = toStream(generate(list)).getReader();
  const read: Part[] = [];
  for (let next = await reader.read(); !next.done; next = await reader.read()) read.push(next.value);
  assert.deepEqual(read, list);
});

test("leaving the iteration, or cancelling the reader, ends the generator", async () => {
  let ended = 0;
  async function* endless(): AsyncGenerator<Part> {
    try {
      for (;;) yield { type: "text-delta", id: "0", delta: "x" };
    } finally {
      ended++;
    }
  }
  for await (const _ of toStream(endless())) break;
  assert.equal(ended, 1);
  const reader = toStream(endless()).getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(ended, 2);
});

test("nothing comes before the first text, and then what opened it", async () => {
  const list = parts("", "a", "b");
  let seen = 0;
  const before: Part[] = [
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "hm" },
    { type: "reasoning-end", id: "r" },
  ];
  const all = await collect(fromFirstText(generate([...before, ...list]), () => seen++));
  assert.deepEqual(all, parts("a", "b"));
  assert.equal(seen, before.length + list.length);
});

test("a stream without text yields its finish alone", async () => {
  assert.deepEqual(await collect(fromFirstText(generate(parts()))), [finish()]);
});

test("an error part is thrown", async () => {
  const error = new Error("broken");
  await assert.rejects(collect(fromFirstText(generate([{ type: "error", error }]))), error);
});
