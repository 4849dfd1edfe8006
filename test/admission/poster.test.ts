import assert from "node:assert/strict";
import { test } from "vitest";
import { postLog } from "../../src/admission/poster.ts";
import type { Pool } from "../../src/store/pool.ts";
import { makeAccount } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";

/** Creates workspaces, each with a settlement that waits in the log. */
async function settledIn(pool: Pool, charges: Record<string, bigint>): Promise<void> {
  for (const [id, charge] of Object.entries(charges)) {
    await makeAccount(pool, id, { granted: 10_000 });
    await pool.query(
      `insert into settlement_log (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level,
         input_tokens, output_tokens, cached_tokens, credits_micro, outcome, latency_ms,
         replica, seq, held_micro, running_now, used_requests, used_input)
       values ($1, now(), 'gen_' || $1, 'req_' || $1, 'key_1', false, 'text', 'auto', 'low', 1, 1, 0, $2, 'ok', 1,
         'r1', 1, 0, 0, 1, 1)`,
      [id, charge],
    );
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
