import assert from "node:assert/strict";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { createStore } from "../../src/store/open.ts";
import { frequent, type Pool } from "../../src/store/pool.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { copyCluster } from "../helpers/cluster.ts";
import { testDatabase } from "../helpers/database.ts";

const FREQUENT = ["select $1::int + 1 as sum", "select $1::int + 2 as sum"] as const;
// The name of one that is noted twice stays its own.
frequent(FREQUENT[0]);
frequent(...FREQUENT);

test("prepares frequent statements in the embedded database, and none where a pooler may be", async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-store-"));
  t.onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  await chmod(dataDir, 0o711);
  await copyCluster(dataDir);
  const { url } = await testDatabase(t);
  for (const databaseUrl of [undefined, url]) {
    const rest = { dataDir, databaseListenUrl: undefined, migrates: true, databaseConnections: 1 };
    await using store = createStore({ databaseUrl, ...rest }, createLog("silent"), new AbortController().signal);
    const prepared = await store.open(({ requests }) => preparedIn(requests));
    assert.deepEqual(prepared, databaseUrl ? [] : FREQUENT.map((statement) => ({ statement, uses: 2n })));
  }
});

/** Statements that the one connection of a pool has prepared, after two frequent ones, another one, and all again. */
async function preparedIn(pool: Pool) {
  for (const term of [1, 2]) {
    assert.deepEqual(await pool.query(FREQUENT[0], [term]), [{ sum: term + 1 }]);
    assert.deepEqual(await pool.query(FREQUENT[1], [term]), [{ sum: term + 2 }]);
    assert.deepEqual(await pool.query("select $1::int as sum", [term]), [{ sum: term }]);
  }
  return pool.query("select statement, generic_plans + custom_plans as uses from pg_prepared_statements order by 1");
}
