import assert from "node:assert/strict";
import { test } from "vitest";
import { randomHex } from "../../src/contract/random-hex.ts";

test("makes 32 hexadecimal digits that never repeat, also when the random bytes are refilled", () => {
  const made = Array.from({ length: 1_000 }, randomHex);
  assert.ok(made.every((digits) => /^[0-9a-f]{32}$/.test(digits)));
  assert.equal(new Set(made).size, made.length);
});
