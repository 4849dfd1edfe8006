import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "vitest";
import { Vocabulary } from "../../../src/engine/tokens/vocabulary.ts";

test("knows every token by its rank, also within a text, and nothing else", () => {
  const vocabulary = new Vocabulary();
  const file = readFileSync(createRequire(import.meta.url).resolve("gpt-tokenizer/data/o200k_base.tiktoken"), "latin1");
  const tokens = file
    .trimEnd()
    .split("\n")
    .map((line) => Buffer.from(line.split(" ")[0] ?? "", "base64").toString("latin1"));
  assert.equal(tokens.length, 199_998);
  const known = new Set(tokens);
  for (const [rank, token] of tokens.entries()) {
    const text = `a${token}`;
    assert.equal(vocabulary.rank(text, 1, text.length), rank, token);
    for (const other of [`${token}\x00`, `\xff${token}`])
      assert.equal(vocabulary.rank(other, 0, other.length) >= 0, known.has(other), other);
  }
  assert.equal(vocabulary.rank("a", 0, 0), -1);
});
