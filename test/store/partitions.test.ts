import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { test } from "vitest";
import { arrangePartitions, keepPartitions } from "../../src/store/partitions.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { testDatabase } from "../helpers/database.ts";
import { admitIn, settleIn } from "../helpers/exchange.ts";
import { until } from "../helpers/until.ts";

const NOW = Date.UTC(2026, 10, 30, 23, 59, 59, 999);
const DAY = 86_400_000;

async function partitions(pool: Pool): Promise<string[]> {
  const rows = await pool.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent in ('generations'::regclass, 'usage'::regclass, 'ledger'::regclass) order by 1`,
  );
  return rows.map(({ name }) => name);
}

const months = (...names: string[]): string[] =>
  ["generations", "ledger", "usage_minute"].flatMap((part) => [...names, "rest"].map((name) => `${part}_${name}`));

async function writeGeneration(pool: Pool, at: string, id: string): Promise<void> {
  await pool.query(
    `insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level,
       input_tokens, output_tokens, cached_tokens, credits_micro, outcome, latency_ms)
     values ('ws_1', $1, $2, $2, 'key_1', false, 'text', 'auto', 'low', 1, 1, 0, 1, 'ok', 1)`,
    [at, id],
  );
}

async function addWorkspace(pool: Pool, id: string): Promise<void> {
  await pool.query("insert into workspaces (id, name) values ($1, $1)", [id]);
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes)
     values ($1, 'key_' || $1, convert_to($1, 'UTF8'), '', '{}')`,
    [id],
  );
  await pool.query("insert into accounts (workspace_id, granted_micro) values ($1, 1000000)", [id]);
}

/** Admits and settles one request. */
async function runRequest(pool: Pool, workspace: string, at: Date, n: number): Promise<void> {
  assert.equal(await admitIn(pool, workspace, `req_${n}`, { hold: 1 }, at), undefined);
  await settleIn(pool, workspace, `req_${n}`, { charge: 1, key_id: `key_${workspace}` }, at);
}

async function writeUse(pool: Pool, unit: string, at: string): Promise<void> {
  await pool.query("insert into usage values ('ws_1', $1, $2, 'key_1', 1, 0, 1, 1, 0, 1)", [unit, at]);
}

async function places(pool: Pool, table: string, column: string): Promise<string[]> {
  const rows = await pool.query<{ place: string }>(
    `select tableoid::regclass || ' ' || to_char(${column} at time zone 'UTC', 'YYYY-MM-DD HH24:MI') as place
     from ${table} order by ${column}`,
  );
  return rows.map(({ place }) => place);
}

test("creates partitions for the current month and the next two, and changes nothing in another round", async (t) => {
  const { pool } = await testDatabase(t);
  for (let round = 0; round < 2; round++) {
    await arrangePartitions(pool, NOW, 400, 30);
    assert.deepEqual(
      await partitions(pool),
      [...months("2026_11", "2026_12", "2027_01"), "usage_day", "usage_hour"].sort(),
    );
  }
  await arrangePartitions(pool, NOW + 1, 400, 30);
  assert.ok((await partitions(pool)).includes("ledger_2027_02"));
});

test("keeps outcomes for seven days, in a partition for each day", async (t) => {
  const { pool } = await testDatabase(t);
  const days = ["2026-11-22", "2026-11-23", "2026-11-24", "2026-11-30", "2026-12-02", "2026-12-03"];
  for (const day of days) {
    await pool.query("insert into outcomes (workspace_id, created_at, id) values ('ws_1', $1, 'gen_1')", [
      `${day}T23:59:59Z`,
    ]);
  }
  const kept = (...names: string[]) => names.map((day) => `outcomes_${day.replaceAll("-", "_")} ${day} 23:59`);
  // The 23rd ended one millisecond less than seven days before.
  await arrangePartitions(pool, NOW, 400, 30);
  assert.deepEqual(await places(pool, "outcomes", "created_at"), [
    ...kept("2026-11-23", "2026-11-24", "2026-11-30", "2026-12-02"),
    "outcomes_rest 2026-12-03 23:59",
  ]);
  await arrangePartitions(pool, NOW + 1, 400, 30);
  assert.deepEqual(
    await places(pool, "outcomes", "created_at"),
    kept("2026-11-24", "2026-11-30", "2026-12-02", "2026-12-03"),
  );
});

test("drops the counters of capped subjects that are idle for a period, and holds without a grant", async (t) => {
  const { pool } = await testDatabase(t);
  for (const [subject, days] of [
    ["user:idle", 40.1],
    ["user:kept", 39.9],
  ])
    await pool.query(
      `insert into subject_periods values ('ws_1', $1, $2, '{0,0,0,0,0}', '{0,0,0,0,0}', '{0,0,0,0,0}', '{0,0,0,0,0}')`,
      [subject, new Date(NOW - Number(days) * 86_400_000)],
    );
  await pool.query("insert into subject_holds values ('ws_1', 'req_1', 'user:kept', 1, 5)");
  await arrangePartitions(pool, NOW, 400, 30);
  assert.deepEqual(await pool.query("select subject from subject_periods"), [{ subject: "user:kept" }]);
  assert.deepEqual(await pool.query("select subject from subject_holds"), []);
});

test("moves rows from the default partition to their month, and drops old months", async (t) => {
  const { pool } = await testDatabase(t);
  const times = ["2025-10-26", "2025-10-31", "2025-11-01", "2026-11-30", "2026-12-01", "2027-02-01"];
  for (const [i, time] of times.entries()) {
    await writeGeneration(pool, `${time}T00:00:00Z`, `gen_${i}`);
    await pool.query("insert into ledger (workspace_id, at, kind, reference) values ('ws_1', $1, 'grant', 'r')", [
      `${time}T00:00:00Z`,
    ]);
    for (const unit of ["minute", "hour", "day"]) await writeUse(pool, unit, `${time}T00:00:00Z`);
  }
  const kept = [
    "generations_2025_11 2025-11-01 00:00",
    "generations_2026_11 2026-11-30 00:00",
    "generations_2026_12 2026-12-01 00:00",
    "generations_rest 2027-02-01 00:00",
  ];
  // October 2025 ended one millisecond less than 395 days before.
  await arrangePartitions(pool, NOW, 394, 30);
  assert.deepEqual(await places(pool, "generations", "created_at"), kept);
  const minutes = (await places(pool, "usage", "start")).filter((place) => place.startsWith("usage_minute"));
  assert.deepEqual(
    minutes,
    kept.map((place) => place.replace("generations", "usage_minute")),
  );
  const [rows] = await pool.query(
    "select count(*) filter (where unit = 'hour') as hours, count(*) filter (where unit = 'day') as days from usage",
  );
  assert.deepEqual(rows, { hours: 6n, days: 6n });
  assert.equal((await places(pool, "ledger", "at"))[0], "ledger_2025_10 2025-10-26 00:00");
  assert.equal((await places(pool, "ledger", "at")).length, 6);

  await writeGeneration(pool, "2025-11-02T00:00:00Z", "gen_9");
  await arrangePartitions(pool, NOW, 365, 30);
  assert.ok((await partitions(pool)).includes("generations_2025_11"), "the month ended 364 days and a second before");
  await arrangePartitions(pool, NOW + 2 * DAY, 365, 30);
  assert.ok(!(await partitions(pool)).includes("generations_2025_11"));
  assert.equal((await places(pool, "generations", "created_at")).length, 3);
});

test("arranges partitions on several replicas while requests of the same month are admitted and settled", async (t) => {
  const { pool, url } = await testDatabase(t);
  const replicas = Array.from({ length: 3 }, () => openPool(url, { max: 2 }));
  t.onTestFinished(async () => {
    await Promise.all(replicas.map((replica) => replica.end()));
  });
  let working = true;
  let settled = 0;
  const worker = async (workspace: string): Promise<void> => {
    await addWorkspace(pool, workspace);
    while (working) {
      await runRequest(pool, workspace, new Date(NOW - (settled % 2) * 2 * DAY), settled);
      settled++;
    }
  };
  const workers = [worker("ws_1"), worker("ws_2")];
  let rounds = 0;
  for (; rounds < 50 && !(await partitions(pool)).includes("usage_minute_2026_11"); rounds++) {
    await sleep(20);
    await Promise.allSettled(replicas.map((replica) => arrangePartitions(replica, NOW, 400, 30)));
  }
  working = false;
  await Promise.all(workers);
  await arrangePartitions(pool, NOW, 400, 30);
  const [counts] = await pool.query(
    `select (select count(*) from generations) as generations,
       (select sum(requests) from usage_minute_2026_11) as minutes, (select sum(requests) from usage_day) as days,
       (select count(*) from ledger_2026_11) as movements,
       (select count(*) from generations_rest) + (select count(*) from usage_minute_rest)
         + (select count(*) from ledger_rest) as rest`,
  );
  const all = BigInt(settled);
  assert.deepEqual(counts, {
    generations: all,
    minutes: String(all),
    days: String(all),
    movements: all,
    rest: 0n,
  });
});

test("gives up waiting for a lock after a short time and succeeds in the next round", async (t) => {
  const { pool, url } = await testDatabase(t);
  const reader = new pg.Client(url);
  await reader.connect();
  await reader.query("begin; select from generations_rest");
  const start = performance.now();
  let ended = false;
  const refused = assert.rejects(arrangePartitions(pool, NOW, 400, 30), { code: "55P03" }).finally(() => {
    ended = true;
  });
  const waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await until(async () => ended || (await pool.query(waits)).length > 0);
  await writeGeneration(pool, "2026-11-15T00:00:00Z", "gen_1");
  await refused;
  const ms = performance.now() - start;
  assert.ok(ms < 10_000, `${ms}`);
  await reader.end();
  await arrangePartitions(pool, NOW, 400, 30);
  assert.deepEqual(await places(pool, "generations", "created_at"), ["generations_2026_11 2026-11-15 00:00"]);
});

test("arranges partitions at the start, tolerates an unreachable database, and stops", async (t) => {
  const { pool } = await testDatabase(t);
  const log = createLog("silent");
  const keeper = await keepPartitions(pool, { retentionDays: 400, runDays: 30, log, clock: () => NOW });
  assert.equal((await partitions(pool)).length, 14);
  await keeper.stop();

  const away = openPool("postgres://nobody@127.0.0.1:1/none");
  const waiting = await keepPartitions(away, { retentionDays: 400, runDays: 30, log });
  await waiting.stop();
  await away.end();
});
