import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "vitest";
import { Vocabulary } from "../../../src/engine/tokens/vocabulary.ts";
import { packVocabulary, readTokens } from "../../../tools/pack-vocabulary.ts";

test("the committed file has the tokens of the installed package", () => {
  const committed = readFileSync(new URL("../../../src/engine/tokens/o200k_base.bin", import.meta.url));
  assert.ok(committed.equals(packVocabulary(readTokens())), "run: npm run build:vocabulary");
});

test("knows every token by its rank, also within a text, and nothing else", () => {
  const vocabulary = new Vocabulary();
  const tokens = readTokens()
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
