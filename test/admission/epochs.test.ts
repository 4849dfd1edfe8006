import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "vitest";
import { keepEpoch } from "../../src/admission/epochs.ts";
import type { Pool } from "../../src/store/pool.ts";
import { logSettlement, makeAccount, QUIET } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { admit, makeGrants, settle } from "../helpers/grants.ts";
import { until } from "../helpers/until.ts";

const MIGRATION = join(import.meta.dirname, "../../src/store/migrations/000039_forgotten_replicas.sql");

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
    await (await keepEpoch(database.pool, "dead", dead, () => true, QUIET)).stop();
    const epoch = await keepEpoch(database.pool, "living", living, () => true, QUIET);
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

  test("end although others are locked, or have a settlement that the database refuses", async (t) => {
    const { pool } = await testDatabase(t);
    const dead = "insert into grants values ($1, 'dead', default, 0, now(), 1000, 0, 0, 0, 0, 0, 0, '{}')";
    for (const id of ["ws_1", "ws_2", "ws_3"]) {
      await makeAccount(pool, id, { granted: 1_000 });
      await pool.query(dead, [id]);
    }
    await logSettlement(pool, "ws_1", "dead", 2_000n);
    await pool.query("insert into replicas (id, beat_at) values ('dead', clock_timestamp())");
    const epoch = await keepEpoch(pool, "living", await makeGrants(t, { pool }, "living"), () => true, QUIET);
    t.onTestFinished(() => epoch.stop());
    const left = async () => (await pool.query("select workspace_id as id from grants order by 1")).map(({ id }) => id);
    await pool.tx(async (query) => {
      await query("select from accounts where workspace_id = 'ws_2' for update");
      await until(async () => !(await left()).includes("ws_3"));
    });
    await until(async () => !(await left()).includes("ws_2"));
    assert.deepEqual(await left(), ["ws_1"]);
  });

  test("end also when their replica died days ago, which is then forgotten", async (t) => {
    const { pool } = await testDatabase(t);
    await makeAccount(pool, "ws_1", { granted: 1_000 });
    await pool.query("insert into grants values ('ws_1', 'dead', default, 0, now(), 1000, 900, 1, 1, 0, 0, 0, '{}')");
    await pool.query(
      `insert into replicas (id, beat_at)
       select id, clock_timestamp() - days * interval '1 day' from (values ('dead', 3), ('idle', 3), ('recent', 0.5))
         as x (id, days)`,
    );
    const epoch = await keepEpoch(pool, "living", await makeGrants(t, { pool }, "living"), () => true, QUIET);
    t.onTestFinished(() => epoch.stop());
    await until(async () => (await replicasOf(pool)).length === 0);
    const known = async () => (await pool.query("select id from replicas order by id")).map(({ id }) => id).join(" ");
    await until(async () => (await known()) === "living recent");
  });

  test("end also when an earlier version has forgotten their replica", async (t) => {
    const { pool } = await testDatabase(t);
    for (const id of ["ws_1", "ws_2"]) await makeAccount(pool, id, { granted: 1_000 });
    const grant = "insert into grants values ($1, $2, default, 0, now(), 1000, 900, 1, 1, 0, 0, 0, '{}')";
    await pool.query(grant, ["ws_1", "forgotten"]);
    await pool.query(grant, ["ws_2", "known"]);
    await pool.query("insert into replicas (id, beat_at) values ('known', clock_timestamp() - interval '1 hour')");
    await pool.query(await readFile(MIGRATION, "utf8"));
    const ages = await pool.query("select id from replicas where beat_at < clock_timestamp() - interval '30 minutes'");
    assert.deepEqual(ages, [{ id: "known" }]);
    const epoch = await keepEpoch(pool, "living", await makeGrants(t, { pool }, "living"), () => true, QUIET);
    t.onTestFinished(() => epoch.stop());
    await until(async () => (await replicasOf(pool)).length === 0);
  });

  test("are closed when a statement opened them that their replica does not know", async (t) => {
    const database = await testDatabase(t);
    await makeAccount(database.pool, "ws_1", { granted: 1_000 });
    await database.pool.query(
      "insert into grants values ('ws_1', 'me', default, 0, now(), 1000, 0, 0, 0, 0, 0, 0, '{}')",
    );
    const grants = await makeGrants(t, database, "me");
    const epoch = await keepEpoch(database.pool, "me", grants, () => true, QUIET);
    t.onTestFinished(() => epoch.stop());
    await until(async () => (await replicasOf(database.pool)).length === 0);
    await admit(grants, { hold: 1_000 });
  });

  test("stay during an outage, in which no replica can write a heartbeat", async (t) => {
    const { pool } = await testDatabase(t);
    await makeAccount(pool, "ws_1", { granted: 1_000 });
    const link = { away: false };
    const flaky: Pool = {
      ...pool,
      query: async (text, values) => {
        if (link.away) throw Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" });
        return (await pool.query(text, values)) as never;
      },
    };
    await admit(await makeGrants(t, { pool }, "other"));
    await pool.query("insert into replicas (id, beat_at) values ('other', clock_timestamp())");
    const epoch = await keepEpoch(flaky, "me", await makeGrants(t, { pool }, "me"), () => true, QUIET);
    t.onTestFinished(() => epoch.stop());
    await sleep(9_000);
    link.away = true;
    await sleep(5_000);
    link.away = false;
    // 14 s without a heartbeat by now, but none of them counted with a working database.
    await sleep(7_000);
    assert.deepEqual(await replicasOf(pool), ["other"]);
    await until(async () => (await replicasOf(pool)).length === 0);
  });

  test("are kept with the responses of idempotency keys, of which expired ones are removed", async (t) => {
    const { pool } = await testDatabase(t);
    await pool.query(
      `insert into idempotency (workspace_id, key, body, request_id, response, expires_at)
       select 'ws_1', decode(lpad(n::text, 4, '0'), 'hex'), '', 'req', '',
         clock_timestamp() + (n - 5) * interval '1 minute' + interval '1 s'
       from generate_series(1, 10) n`,
    );
    const epoch = await keepEpoch(pool, "me", await makeGrants(t, { pool }, "me"), () => true, QUIET);
    t.onTestFinished(() => epoch.stop());
    const left = async () => (await pool.query("select from idempotency")).length;
    await until(async () => (await left()) === 5);
    // Time to remove too many.
    await sleep(100);
    assert.equal(await left(), 5);
  });
});
