import assert from "node:assert/strict";
import { test } from "vitest";
import { postLog } from "../../src/admission/poster.ts";
import type { Pool } from "../../src/store/pool.ts";
import { logSettlement, makeAccount } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";

async function settledIn(pool: Pool, charges: Record<string, bigint>): Promise<void> {
  for (const [id, charge] of Object.entries(charges)) {
    await makeAccount(pool, id, { granted: 10_000 });
    await logSettlement(pool, id, "r1", charge);
  }
}

const waiting = (pool: Pool) => pool.query("select workspace_id as id from settlement_log order by 1");

test("posts the other workspaces while one is locked", async (t) => {
  const { pool } = await testDatabase(t);
  await settledIn(pool, { ws_1: 1n, ws_2: 1n, ws_3: 1n });
  await pool.tx(async (query) => {
    await query("select from accounts where workspace_id = 'ws_2' for update");
    await postLog(pool, undefined);
    assert.deepEqual(await waiting(pool), [{ id: "ws_2" }]);
    await postLog(pool, "ws_2");
  });
  await postLog(pool, "ws_2");
  assert.deepEqual(await waiting(pool), []);
});

test("posts the other workspaces for an operator although the database refuses what waits in one", async (t) => {
  const { pool } = await testDatabase(t);
  await settledIn(pool, { ws_1: 1n, ws_2: 9n * 10n ** 18n, ws_3: 1n });
  await postLog(pool, undefined);
  assert.deepEqual(await waiting(pool), [{ id: "ws_2" }]);
  await assert.rejects(postLog(pool, "ws_2"), { code: "23514" });
});
