import assert from "node:assert/strict";
import { afterAll, describe, it } from "vitest";
import { createTokenizer } from "../../src/engine/tokens.ts";
import { Failure } from "../../src/failure.ts";

const long = "The invoice was paid, 東京 and all. ".repeat(2000);

describe("createTokenizer", () => {
  const tokenizer = createTokenizer();
  afterAll(() => tokenizer.close());

  it("counts the same in the main thread and in the worker", async () => {
    assert.equal(tokenizer.count("Hello world"), 2);
    assert.equal(await tokenizer.countAsync("Hello world"), 2);
    assert.equal(await tokenizer.countAsync(long), tokenizer.count(long));
    const texts = [long, `${long}x`, "", `${long}\ud83d`, " ".repeat(70_000)];
    assert.deepEqual(await Promise.all(texts.map(tokenizer.countAsync)), texts.map(tokenizer.count));
  });

  it("does not delay a small text behind a huge one", async () => {
    const order: string[] = [];
    const huge = tokenizer.countAsync(long.repeat(60)).then(() => order.push("huge"));
    await tokenizer.countAsync(long).then(() => order.push("small"));
    await huge;
    assert.deepEqual(order, ["small", "huge"]);
  });

  it("gives the text of the first tokens", () => {
    assert.equal(tokenizer.prefix("Hello world, and more", 2), "Hello world");
    assert.equal(tokenizer.prefix("Hello", 0), "");
    assert.equal(tokenizer.prefix("Hello", 9), "Hello");
    assert.equal(tokenizer.count(tokenizer.prefix(long, 777)), 777);
  });

  it("limits the tokens of a stream", () => {
    const meter = tokenizer.meter(1);
    assert.equal(meter.push("Hello world") + meter.flush(), "Hello");
    assert.equal(meter.full, true);
  });
});

describe("the counting worker", () => {
  // Counts 1 token for any text, but dies on a text that starts with "!".
  const script = new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from "node:worker_threads";
      parentPort.on("message", ({ id, text }) => {
        if (text.startsWith("!")) throw new Error("died");
        parentPort.postMessage({ id, tokens: 1 });
      });
    `)}`,
  );

  it("restarts after it has died", async () => {
    const tokenizer = createTokenizer(script);
    await assert.rejects(tokenizer.countAsync("!".repeat(9000)), (error) => {
      return error instanceof Failure && error.kind === "internal" && String(error.cause).includes("died");
    });
    assert.equal(await tokenizer.countAsync(long), 1);
    await tokenizer.close();
  });

  it("refuses text while the queued text exceeds its bound", async () => {
    const tokenizer = createTokenizer(script);
    const body = "a".repeat(67_108_864);
    const waiting = [tokenizer.countAsync(body), tokenizer.countAsync(body)];
    await assert.rejects(tokenizer.countAsync(long), { kind: "overloaded" });
    assert.deepEqual(await Promise.all(waiting), [1, 1]);
    assert.equal(await tokenizer.countAsync(long), 1);
    await tokenizer.close();
  });

  it("rejects queued texts when it is closed", async () => {
    const tokenizer = createTokenizer();
    const waiting = assert.rejects(tokenizer.countAsync(long), { kind: "overloaded" });
    await tokenizer.close();
    await waiting;
    await assert.rejects(tokenizer.countAsync(long), { kind: "overloaded" });
    assert.equal(await tokenizer.countAsync("still"), 1);
  });
});
