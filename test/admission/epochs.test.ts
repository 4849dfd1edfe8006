import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { keepEpoch } from "../../src/admission/epochs.ts";
import type { Pool } from "../../src/store/pool.ts";
import { makeAccount, QUIET } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { admit, makeGrants, settle } from "../helpers/grants.ts";
import { until } from "../helpers/until.ts";

async function replicasOf(pool: Pool): Promise<string[]> {
  const rows = await pool.query<{ replica: string }>("select distinct replica from grants order by replica");
  return rows.map(({ replica }) => replica);
}

// Concurrent, because these tests wait for real time to pass.
describe.concurrent("the grants of replicas", () => {
  test("end when their replica is dead, without a charge, and stay while it lives", async (t) => {
    const database = await testDatabase(t);
    await makeAccount(database.pool, "ws_1", { granted: 1_000 });
    const dead = await makeGrants(t, database, "dead");
    const living = await makeGrants(t, database, "living");
    // It sends one heartbeat and then no more.
    await (await keepEpoch(database.pool, "dead", dead, QUIET)).stop();
    const epoch = await keepEpoch(database.pool, "living", living, QUIET);
    t.onTestFinished(() => epoch.stop());
    const [lost, kept] = [await admit(dead), await admit(living)];
    assert.deepEqual(await replicasOf(database.pool), ["dead", "living"]);
    const start = performance.now();
    await until(async () => (await replicasOf(database.pool)).length === 1);
    assert.ok(performance.now() - start > 8_000);
    await assert.rejects(settle(dead, lost), { kind: "overloaded" });
    assert.equal(await settle(living, kept), 100);
    // All of the rest can be held.
    await admit(living, { hold: 900 });
  });

  test("are closed when a statement opened them that their replica does not know", async (t) => {
    const database = await testDatabase(t);
    await makeAccount(database.pool, "ws_1", { granted: 1_000 });
    await database.pool.query(
      "insert into grants values ('ws_1', 'me', default, 0, now(), 1000, 0, 0, 0, 0, 0, 0, '{}')",
    );
    const grants = await makeGrants(t, database, "me");
    const epoch = await keepEpoch(database.pool, "me", grants, QUIET);
    t.onTestFinished(() => epoch.stop());
    await until(async () => (await replicasOf(database.pool)).length === 0);
    await admit(grants, { hold: 1_000 });
  });
});
