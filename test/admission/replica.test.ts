import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "vitest";
import { keepAlive } from "../../src/admission/replica.ts";
import type { Pool } from "../../src/store/pool.ts";
import { accountOf, answered, ask, checkBooks, makeAccount, makeReplica, QUIET } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";

const COST = 41_000n;

/** Waits for a condition and returns how many seconds it took. */
async function within(what: string, seconds: number, holds: () => Promise<boolean>): Promise<number> {
  const start = performance.now();
  while (!(await holds())) {
    assert.ok(performance.now() - start < seconds * 1_000, `${what} took longer than ${seconds} s`);
    await sleep(50);
  }
  return (performance.now() - start) / 1_000;
}

// Concurrent, because these tests wait for real time to pass.
describe.concurrent("leases and replicas", () => {
  test("releases leases of a dead replica within 30 s without a charge, and keeps those of a living one", async (t) => {
    const { pool } = await testDatabase(t);
    await makeAccount(pool, "ws_1", { granted: 100n * COST });
    await makeAccount(pool, "ws_2", { granted: 100n * COST });
    const dead = await makeReplica(t, pool, { id: "dead" });
    const living = await makeReplica(t, pool, { id: "living" });
    const quiet = await makeReplica(t, pool, { id: "quiet" });
    const heartbeats = await Promise.all([
      keepAlive(pool, "living", living.admission.holds, QUIET),
      keepAlive(pool, "quiet", quiet.admission.holds, QUIET),
    ]);
    t.onTestFinished(async () => {
      await Promise.all(heartbeats.map((heartbeat) => heartbeat.stop()));
    });
    // It sent one heartbeat and then no more.
    await (await keepAlive(pool, "dead", dead.admission.holds, QUIET)).stop();

    const idempotency = { key: "aa".repeat(32), body: "bb".repeat(32) };
    const long = [await living.take(ask("ws_1")), await quiet.take(ask("ws_2"))];
    for (const workspace of ["ws_1", "ws_1", "ws_2"]) await dead.take(ask(workspace));
    const retried = ask("ws_2", { idempotency });
    await dead.take(retried);
    // A lease that its replica does not know, as after a statement that timed out but was executed.
    await pool.query("select open_leases('ws_1', 'living', $1)", [
      JSON.stringify([{ request_id: "req_lost", key_id: "key_1", input_tokens: 1, hold_micro: 5 }]),
    ]);
    assert.equal((await accountOf(pool, "ws_1")).running, 4);

    const lostAfter = await within(
      "release of the lost lease",
      6,
      async () => (await accountOf(pool, "ws_1")).running === 3,
    );
    assert.ok(lostAfter < 6);
    await assert.rejects(living.take(ask("ws_2", { idempotency })), { kind: "idempotency_key_in_use" });
    const figures = async () => [await accountOf(pool, "ws_1"), await accountOf(pool, "ws_2")];
    const released = await within("release of the dead replica's leases", 26, async () =>
      (await figures()).every(({ running }) => running === 1),
    );
    assert.ok(released > 8, `released after only ${released} s`);
    for (const { granted, held } of await figures()) {
      assert.equal(granted, 100n * COST);
      assert.equal(held, COST);
    }
    await checkBooks(pool);
    const rerun = await living.take(ask("ws_2", { idempotency }));
    await rerun.settle(answered());
    // The leases of living replicas are still open.
    for (const lease of long) assert.deepEqual(await lease.settle(answered()), { credits: 0.041 });
    const rows = await pool.query("select kind from ledger where reference = 'req_lost' order by id");
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ["hold", "release"],
    );
    // A lease that the replica takes after it was declared dead is released too.
    await dead.take(ask("ws_1"));
    await within("release of the late lease", 12, async () => (await accountOf(pool, "ws_1")).running === 0);
    assert.equal((await accountOf(pool, "ws_1")).held, 0n);
    await checkBooks(pool);
  });

  test("gives replicas time for a heartbeat after a database outage before it declares them dead", async (t) => {
    const { pool } = await testDatabase(t);
    await makeAccount(pool, "ws_1", { granted: 100n * COST });
    const link = { away: false };
    const flaky: Pool = {
      ...pool,
      query: async (text, values) => {
        if (link.away) throw Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" });
        return (await pool.query(text, values)) as never;
      },
    };
    const other = await makeReplica(t, pool, { id: "other" });
    await other.take(ask("ws_1"));
    await pool.query("insert into replicas (id, beat_at) values ('other', clock_timestamp())");
    const heartbeat = await keepAlive(flaky, "me", () => false, QUIET);
    t.onTestFinished(() => heartbeat.stop());
    await sleep(9_000);
    link.away = true;
    await sleep(5_000);
    link.away = false;
    // 14 s without a heartbeat by now, but none of them counted with a working database.
    await sleep(7_000);
    assert.equal((await accountOf(pool, "ws_1")).running, 1);
    await within("release", 12, async () => (await accountOf(pool, "ws_1")).running === 0);
  });

  test("removes kept answers that have expired, and no others", async (t) => {
    const { pool } = await testDatabase(t);
    await pool.query(
      `insert into idempotency (workspace_id, key, body, request_id, response, expires_at)
       select 'ws_1', decode(lpad(n::text, 4, '0'), 'hex'), '', 'req', '',
         clock_timestamp() + (n - 5) * interval '1 minute' + interval '1 s'
       from generate_series(1, 10) n`,
    );
    const heartbeat = await keepAlive(pool, "me", () => false, QUIET);
    t.onTestFinished(() => heartbeat.stop());
    const left = async () => Number((await pool.query<{ n: bigint }>("select count(*) as n from idempotency"))[0]?.n);
    await within("removal", 5, async () => (await left()) === 5);
    // Time to remove too many.
    await sleep(100);
    assert.equal(await left(), 5);
  });
});
