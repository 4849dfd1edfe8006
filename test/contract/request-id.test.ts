import assert from "node:assert/strict";
import { test } from "vitest";
import { newGenerationId } from "../../src/contract/generation-id.ts";
import { newRequestId, timeOfRequest } from "../../src/contract/request-id.ts";

test("has the time of its arrival in it, is unique, and says nothing of the identifier of its generation", () => {
  const now = Date.UTC(2026, 10, 20, 12, 0, 0, 123);
  const ids = Array.from({ length: 1_000 }, () => newRequestId(now));
  assert.equal(new Set(ids).size, 1_000);
  for (const id of ids) assert.equal(timeOfRequest(id), now);
  assert.notEqual(newRequestId(now).slice(4), newGenerationId(now).slice(4));
});

test("reads no time from other texts", () => {
  for (const text of ["", "req_", "req_0", `req_${"0".repeat(33)}`, `gen_${"0".repeat(32)}`, `req_${"G".repeat(32)}`]) {
    assert.equal(timeOfRequest(text), undefined);
  }
});
