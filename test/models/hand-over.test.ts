import assert from "node:assert/strict";
import { test } from "vitest";
import { HandOver } from "../../src/models/hand-over.ts";
import type { Piece, Pieces } from "../../src/models/port/model.ts";
import { collect, end, text, textOf } from "./fake-model.ts";

/** Pieces whose reader is noted. */
class Rest implements Pieces {
  readonly #pieces = [text("c"), end()];
  isLeft = false;

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Piece, void>> {
    const value = this.#pieces.shift();
    return value ? { done: false, value } : { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Piece, void>> {
    this.isLeft = true;
    return { done: true, value: undefined };
  }
}

test("gives the pieces of the generator, then those of the iterator that it returns", async () => {
  const handOver = new HandOver(
    (async function* () {
      yield text("a");
      yield text("b");
      return new Rest();
    })(),
  );
  assert.equal(textOf(await collect(handOver)), "abc");
  assert.deepEqual(await handOver.next(), { done: true, value: undefined });
});

test("ends with a generator that returns no iterator, and throws what it throws", async () => {
  const only = async function* () {
    yield text("a");
    return undefined;
  };
  assert.equal(textOf(await collect(new HandOver(only()))), "a");
  const failing = async function* () {
    yield text("a");
    throw new Error("broken");
  };
  await assert.rejects(collect(new HandOver(failing())), /broken/);
});

test("ends the generator when the reader leaves before the hand-over, and the iterator after it", async () => {
  const rest = new Rest();
  let ended = 0;
  const begin = async function* () {
    try {
      yield text("a");
      return rest;
    } finally {
      ended += 1;
    }
  };
  for await (const _ of new HandOver(begin())) break;
  assert.deepEqual([ended, rest.isLeft], [1, false]);
  for await (const piece of new HandOver(begin())) if (textOf([piece]) === "c") break;
  assert.deepEqual([ended, rest.isLeft], [2, true]);
});
