import assert from "node:assert/strict";
import { test } from "vitest";
import { createStore } from "../../src/store/open.ts";
import { frequent, type Pool } from "../../src/store/pool.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { testDatabase } from "../helpers/database.ts";

const FREQUENT = ["select $1::int + 1 as sum", "select $1::int + 2 as sum"] as const;
// The name of one that is noted twice stays its own.
frequent(FREQUENT[0]);
frequent(...FREQUENT);

test("prepares frequent statements where no pooler can be between", async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const rest = { databaseUrl, dataDir: "", databaseListenUrl: undefined, migrates: true, databaseConnections: 1 };
  for (const prepares of [true, false]) {
    await using store = createStore({ ...rest, prepares }, createLog("silent"), new AbortController().signal);
    const prepared = await store.open(({ requests }) => preparedIn(requests));
    assert.deepEqual(prepared, prepares ? FREQUENT.map((statement) => ({ statement, uses: 2n })) : []);
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
