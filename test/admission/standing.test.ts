import assert from "node:assert/strict";
import { test } from "vitest";
import { createStanding } from "../../src/admission/standing.ts";
import type { Failure } from "../../src/contract/failure.ts";
import type { Pool } from "../../src/store/pool.ts";
import { makeAccount } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";

/** What refuses the smallest request of a workspace. */
async function refusal(check: Promise<void> | undefined): Promise<string> {
  const failure: Failure | undefined = await (check ?? Promise.resolve()).then(
    () => undefined,
    (error) => error,
  );
  return failure ? `${failure.kind} ${failure.limit ?? ""}`.trim() : "none";
}

test("refuses a workspace whose limits or credit allow no request at all", async (t) => {
  const { pool } = await testDatabase(t);
  const rich = { granted: 1_000_000 };
  for (const [id, account, expected] of [
    ["rich", rich, "none"],
    ["last", { granted: 1 }, "none"],
    ["poor", { granted: 0 }, "insufficient_credit"],
    ["barred", { ...rich, limits: { requests_per_minute: 0 } }, "rate_limited requests_per_minute"],
    ["busy", { ...rich, limits: { concurrent_requests: 0 } }, "rate_limited concurrent_requests"],
    ["quiet", { ...rich, limits: { input_tokens_per_day: 0 } }, "rate_limited input_tokens_per_day"],
  ] as const) {
    await makeAccount(pool, id, account);
    assert.equal(await refusal(createStanding(pool).check(id)), expected, id);
  }
  assert.equal(await refusal(createStanding(pool).check("unknown")), "none");
});

test("asks the database only about workspaces that were not admitted last", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 0 });
  let statements = 0;
  const counting: Pool = {
    ...pool,
    query: (text, values) => {
      statements++;
      return pool.query(text, values);
    },
  };
  const standing = createStanding(counting);
  const many = await Promise.all(Array.from({ length: 500 }, () => refusal(standing.check("ws_1"))));
  assert.deepEqual([...new Set(many)], ["insufficient_credit"]);
  assert.ok(statements <= 2, `${statements} statements for 500 requests at a time`);

  // Credit counts at once.
  await pool.query("update accounts set granted_micro = 10");
  assert.equal(await refusal(standing.check("ws_1")), "none");
  assert.equal(standing.check("ws_1"), undefined);
  standing.note("ws_1", false);
  const lookUp = standing.check("ws_1");
  assert.notEqual(lookUp, undefined);
  await lookUp;
  standing.note("ws_1", true);
  assert.equal(standing.check("ws_1"), undefined);
});
