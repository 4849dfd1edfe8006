/**
 * Writes the arrays of src/engine/tokens/vocabulary.ts to src/engine/tokens/o200k_base.bin, from the tokens in
 * `gpt-tokenizer`: `npm run build:vocabulary`, after an update of that package. All numbers have 32 bits, the least
 * byte first: the number of tokens, `ends`, `slots`; then the bytes of the tokens.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { firstSlot, SLOTS } from "../src/engine/tokens/vocabulary.ts";

/** Packs tokens in OpenAI's format: one a line, in the order of rank, as base64, space, rank. */
export function packVocabulary(file: string): Buffer {
  const lines = file.trimEnd().split("\n");
  const tokens = lines.map((line) => Buffer.from(line.slice(0, line.indexOf(" ")), "base64"));
  const numbers = Buffer.alloc(4 * (1 + tokens.length + 1 + SLOTS));
  const slots = numbers.subarray(4 * (tokens.length + 2));
  numbers.writeInt32LE(tokens.length);
  let end = 0;
  for (const [rank, token] of tokens.entries()) {
    end += token.length;
    numbers.writeInt32LE(end, 4 * (rank + 2));
    let slot = firstSlot(token);
    while (slots.readInt32LE(4 * slot) !== 0) slot = (slot + 1) % SLOTS;
    slots.writeInt32LE(rank + 1, 4 * slot);
  }
  return Buffer.concat([numbers, ...tokens]);
}

/** The tokens of o200k_base, as OpenAI publishes them. */
export function readTokens(): string {
  return readFileSync(fileURLToPath(import.meta.resolve("gpt-tokenizer/data/o200k_base.tiktoken")), "latin1");
}

if (import.meta.main) {
  const path = resolve(import.meta.dirname, "../src/engine/tokens/o200k_base.bin");
  writeFileSync(path, packVocabulary(readTokens()));
}
