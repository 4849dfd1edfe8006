import assert from "node:assert/strict";
import { test } from "vitest";
import { newGenerationId, timeOfGeneration } from "../../src/contract/generation-id.ts";

test("has its time in it, and is unique", () => {
  const now = Date.UTC(2026, 10, 20, 12, 0, 0, 123);
  const ids = Array.from({ length: 1_000 }, () => newGenerationId(now));
  assert.equal(new Set(ids).size, 1_000);
  for (const id of ids) assert.equal(timeOfGeneration(id), now);
  assert.ok(newGenerationId(now) < newGenerationId(now + 1));
});

test("reads no time from other texts", () => {
  for (const text of ["", "gen_", "gen_0", `gen_${"0".repeat(33)}`, `req_${"0".repeat(32)}`, `gen_${"G".repeat(32)}`]) {
    assert.equal(timeOfGeneration(text), undefined);
  }
});
