import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createTokenizer } from "../../../src/engine/tokens/tokens.ts";

const long = "The invoice was paid, 東京 and all. ".repeat(2000);

describe("createTokenizer", () => {
  const tokenizer = createTokenizer();

  it("counts the same at once and in turns", async () => {
    assert.equal(tokenizer.count("Hello world"), 2);
    assert.equal(await tokenizer.countAsync("Hello world"), 2);
    assert.equal(await tokenizer.countAsync(long), tokenizer.count(long));
    const texts = [long, `${long}x`, "", `${long}\ud83d`, " ".repeat(70_000)];
    assert.deepEqual(await Promise.all(texts.map(tokenizer.countAsync)), texts.map(tokenizer.count));
  });

  it("counts a small text while a huge one is counted", async () => {
    const order: string[] = [];
    const huge = tokenizer.countAsync(long.repeat(60)).then(() => order.push("huge"));
    await tokenizer.countAsync(long).then(() => order.push("small"));
    await huge;
    assert.deepEqual(order, ["small", "huge"]);
  });

  it("limits the tokens of a stream", () => {
    const prefix = (text: string, tokens: number) => {
      const meter = tokenizer.meter(tokens);
      return meter.push(text) + meter.flush();
    };
    assert.equal(prefix("Hello world, and more", 2), "Hello world");
    assert.equal(prefix("Hello", 0), "");
    assert.equal(prefix("Hello", 9), "Hello");
    assert.equal(tokenizer.count(prefix(long, 777)), 777);
    const meter = tokenizer.meter(1);
    assert.equal(meter.push("Hello world") + meter.flush(), "Hello");
    assert.equal(meter.full, true);
  });
});
