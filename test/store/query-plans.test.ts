import assert from "node:assert/strict";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type pg from "pg";
import { test as base } from "vitest";
import { ActorKind, Outcome } from "../../gen/chorus/admin/v1/activity_pb.js";
import { Effort, MetricsGroupBy, MetricsInterval } from "../../gen/chorus/v1/generation_pb.js";
import { createOwnerSessions } from "../../src/admin/sign-in/owner-sessions.ts";
import { readMetrics } from "../../src/admin/usage/metrics.ts";
import { createQuotas } from "../../src/admin/usage/quotas.ts";
import { type Item, NOTHING } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import { arrangePartitions } from "../../src/store/partitions.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf, type BackOffice } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import { itemOf, postOf } from "../helpers/exchange.ts";
import { fixture } from "../helpers/lifetime.ts";
import { type Plan, plansOf, type Scan } from "../helpers/query-plans.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const DAY = 86_400_000;

/** Creates two years of partitions, and 300 workspaces with some rows in each table. */
async function fill(pool: Pool): Promise<void> {
  for (let time = NOW - 730 * DAY; time <= NOW; time += 84 * DAY) await arrangePartitions(pool, time, 36_500, 30);
  await arrangePartitions(pool, NOW, 36_500, 30);
  for (const statement of [
    "insert into workspaces (id, name) select 'ws_' || i, 'ws_' || i from generate_series(0, 299) i",
    `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes)
     select 'ws_' || i, 'key_' || i, convert_to('k' || i, 'UTF8'), '', '{}' from generate_series(0, 299) i`,
    "insert into accounts (workspace_id, granted_micro) select 'ws_' || i, 1000000000 from generate_series(0, 299) i",
    `insert into periods select 'ws_' || i, now(), '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}'
     from generate_series(0, 299) i`,
    `insert into grants
     select 'ws_' || i % 300, 'r' || i / 300, i, 1, now(), 0, 0, 0, 0, 0, 0, 0, '{}' from generate_series(0, 2999) i`,
    `insert into generations
     select 'ws_' || i % 300, to_timestamp(${NOW / 1_000} - i * 6000), 'gen_old_' || i, 'req_old_' || i,
       'key_' || i % 300, false, 'text', 'auto', 'low', 1, 1, 0, 1, 'ok', 'stop', 1, null
     from generate_series(0, 9999) i`,
    `insert into ledger (workspace_id, at, kind, reference)
     select workspace_id, created_at, 'grant', id from generations`,
    `insert into usage select workspace_id, unit, date_trunc(unit, created_at, 'UTC'), key_id, 1, 0, 1, 1, 0, 1
       from generations, unnest(array['minute', 'hour', 'day']) as unit on conflict do nothing`,
  ])
    await pool.query(statement);
  await pool.query("vacuum analyze");
}

const test = base.extend(
  "filled",
  { scope: "file" },
  fixture(async (t) => {
    const database = await testDatabase(t);
    await fill(database.pool);
    return database;
  }),
);

/** Asks for two requests, posts a settlement twice, and appends one to the log. */
async function exchangeItems(client: pg.Client, n: number, at: Date): Promise<void> {
  const none = { credit: 0, running: null, requests: null, input: null, output: null, held: 0, running_now: 0 };
  const used = { used_requests: 0, used_input: 0, minute: 0, grant: 0, after: 0, close: false };
  const item = { workspace: "ws_7", ...none, ...used, spare: { n: 8, credit: 1, input: 1, output: 1 } };
  const asks = [1, 2].map((i) => ({ requestId: `req_${n}_${i}`, hold: 1, input: 1, key: `0${i}`, body: "00" }));
  const row = { created_at: at, key_id: "key_7", streamed: false, shape: "text", effort: "auto", level: "low" };
  const figures = {
    input_tokens: 1,
    output_tokens: 1,
    cached_tokens: 0,
    credits_micro: 0,
    outcome: "ok",
    latency_ms: 1,
  };
  const drafts = { f: "closed", a: 0, g: ["v1"], d: [["m", "f", 0]] };
  const post = { id: `gen_${n}`, request_id: `req_${n}_1`, key: "01", ...row, ...figures, drafts };
  const late = { ...post, id: `gen_late_${n}`, request_id: `req_late_${n}`, admitted_by: "r2" };
  for (const [i, more] of [
    { asks, posts: [] },
    { asks: [], posts: [post] },
    { asks: [], posts: [post, late] },
  ].entries()) {
    const items = [{ ...item, seq: 4 * n + i + 2, ...more }];
    await client.query("select exchange('ws_7', 'r0', 2, $1, $2)", [JSON.stringify(items), at]);
  }
  const { rows } = await client.query("select id from grants where workspace_id = 'ws_7' and replica = 'r0'");
  const seq = 4 * n + 5;
  const said = { held: 0, running_now: 0, used_requests: 0, used_input: 0, credits: 0, output: 0 };
  const posts = [{ ...post, id: `gen_appended_${n}`, request_id: `req_appended_${n}` }];
  const appended = { workspace: "ws_7", seq, grant: Number(rows[0].id), after: seq - 1, ...said, posts };
  const values = [JSON.stringify([appended])];
  const result = await client.query("select append_settlements('r0', $1) as done", values);
  assert.deepEqual(result.rows, [{ done: ["ws_7"] }]);
  await client.query("select post_settlements($1, $2)", [["ws_7"], at]);
  const expected = { closed: "v1" };
  const outcome = ["ws_7", `gen_appended_${n}`, at, null, expected, at];
  const { rows: recorded } = await client.query("select state from record_outcome($1, $2, $3, $4, $5, $6)", outcome);
  assert.deepEqual(recorded, [{ state: "recorded" }]);
}

/** Tables that are distributed by workspace. Keys are not: each database has all keys and finds them by identifier. */
const GROWING =
  /^(accounts|periods|grants|idempotency|bookings|settlement_log|generations|outcomes|runs|run_counts|usage|ledger)/;

/** Lists the scans of a plan that do not search a primary key, or the grants of a replica, for one workspace. */
function faults({ statement, scans }: Plan): string[] {
  const read = scans.filter(({ table, index }) => GROWING.test(table || (index ?? "")));
  const wrong = read.filter(
    ({ index, condition }) => !/_pkey$|^grants_replica$/.test(index ?? "") || !/workspace_id = /.test(condition),
  );
  return wrong.map((scan) => `${JSON.stringify(scan)} in ${statement.slice(0, 200)}`);
}

const tables = (plans: Plan[], pattern: RegExp): string[] =>
  [
    ...new Set(plans.flatMap(({ scans }) => scans.map(({ table }) => table)).filter((table) => pattern.test(table))),
  ].sort();

test("reads one workspace by primary keys, and one partition per table, at admission and settlement", async ({
  filled: { pool, url },
}) => {
  const [partitions] = await pool.query<{ n: bigint }>(
    "select count(*) as n from pg_inherits where inhparent = 'generations'::regclass",
  );
  assert.ok(Number(partitions?.n) >= 26);
  const plans = await plansOf(url, async (client) => {
    // Postgres may change to a generic plan at the sixth execution.
    for (let n = 0; n < 8; n++) {
      const at = new Date(NOW + n);
      await exchangeItems(client, n, at);
      await client.query("select end_grants('ws_7', $1)", [`r${n + 1}`]);
      const run = { workspace_id: "ws_7", began_at: at, id: `gen_${n}`, record: {} };
      await client.query("select keep_runs($1, 5)", [JSON.stringify([run])]);
    }
  });
  assert.deepEqual([...new Set(plans.flatMap(faults))], []);
  assert.ok(plans.some(({ statement }) => /into generations/.test(statement)));
  assert.deepEqual(tables(plans, /^(generations|outcomes|ledger|usage_minute)/), [
    "generations_2026_11",
    "outcomes_2026_11_20",
  ]);
});

base("finds each subject of an item by the primary key, whatever the statistics say", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query("insert into accounts (workspace_id, granted_micro) values ('ws_1', 1000000)");
  await pool.query("insert into caps values ('ws_1', 'c', 'user:*', 'credits', 'day', 1000, 'refuse', null, now())");
  const subjects = ["user:0", "user:1", "user:2"];
  const said = subjects.map((subject) => ({
    ...{ subject, used: { requests: 1, input: 1 } },
    held: { credit: 0, running: 0 },
  }));
  // Statistics of empty tables, with which each index seems to be as good as another one.
  await pool.query("analyze");
  const plans = await plansOf(url, async (client) => {
    const query: Pool["query"] = async (text, values) => (await client.query(text, values && [...values])).rows;
    let [grant, after, minute] = [0, 0, 0];
    const send = async (more: Partial<Item>) => {
      const kept = { ...NOTHING, credit: 10 };
      const item = { ...itemOf("ws_1"), keep: kept, close: false, grant, after, minute, ...more };
      const [reply] = await execute({ query }, "r1", 1, [item]);
      assert.match(reply?.state ?? "", /^(done|appended)$/);
      if (reply?.state === "done") ({ grant, minute } = reply);
      after = item.seq;
    };
    await send({});
    const spare = { n: 8, credit: 1, input: 1, output: 1 };
    const posts = subjects.map((subject) => ({
      ...postOf(subject, { charge: 1, end_user: subject.slice(5) }),
      shared: [subject],
    }));
    await send({ subjects: said.map((one) => ({ ...one, returns: true, spare })) });
    await send({ subjects: said.map((one) => ({ ...one, spare: { ...spare, minute } })) });
    await send({ subjects: said, posts, mode: "append" });
    await send({ subjects: said.map((one) => ({ ...one, returns: true })) });
  });
  const scans = plans.flatMap(({ scans }) => scans).filter(({ table }) => /^subject_(grants|periods)$/.test(table));
  assert.ok(scans.length > 8);
  // Whether there is any subject is asked, too.
  const isOne = ({ condition, rows }: Scan) => /subject = /.test(condition) || (/ANY/.test(condition) && rows <= 1);
  assert.deepEqual(
    scans.filter((scan) => !isOne(scan)),
    [],
  );
  assert.deepEqual(await pool.query("select * from subject_grants"), []);
});

test("reads one workspace by primary keys, and the partitions of the period, for quotas and metrics", async ({
  filled: { pool, url },
}) => {
  const read = (from: string, to: string, interval: MetricsInterval, groupBy: MetricsGroupBy) =>
    plansOf(url, async (client) => {
      const own: Pool = {
        ...pool,
        query: async (text, values) => (await client.query(text, values && [...values])).rows,
      };
      const quotas = createQuotas(
        own,
        async () => undefined,
        () => NOW,
      );
      const period = { startTime: timestampFromDate(new Date(from)), endTime: timestampFromDate(new Date(to)) };
      for (let n = 0; n < 8; n++) {
        await quotas({ workspaceId: "ws_7", workspace: "ws_7" });
        await readMetrics(own, { ...period, interval, groupBy, groupTag: "" }, { workspaceId: "ws_7", keyId: "" });
      }
    });
  const long = await read("2024-12-01", "2026-11-20T11:22:33Z", MetricsInterval.MONTH, MetricsGroupBy.KEY);
  const short = await read("2026-09-30T23:00:00Z", "2026-10-01T01:00:00Z", MetricsInterval.MINUTE, MetricsGroupBy.NONE);
  const hours = await read("2026-06-01", "2026-11-20", MetricsInterval.HOUR, MetricsGroupBy.NONE);
  assert.deepEqual([...new Set([...long, ...short, ...hours].flatMap(faults))], []);
  assert.deepEqual(tables(long, /^(generations|ledger|usage)/), ["usage_day", "usage_hour", "usage_minute_2026_11"]);
  assert.deepEqual(tables(short, /^(generations|ledger|usage)/), ["usage_minute_2026_09", "usage_minute_2026_10"]);
  assert.deepEqual(tables(hours, /^(generations|ledger|usage)/), ["usage_hour"]);
});

const OWNER = { kind: "owner", id: "tok_1", workspaceId: "ws_7" } as const;

/** Lists the scans of a console query that do not search an index for one workspace or one key. */
function faultsOfLookUp({ statement, scans }: Plan, small: ReadonlySet<string>): string[] {
  const read = scans.filter(({ table, index }) =>
    /^(generations|outcomes|usage|ledger|audit|api_keys)/.test(table || (index ?? "")),
  );
  const wrong = read.filter(
    ({ type, table, condition }) =>
      !(type === "Seq Scan" && small.has(table)) && !/workspace_id = |\((k_?\d*\.)?id = |secret_hash/.test(condition),
  );
  return wrong.map((scan) => `${JSON.stringify(scan)} in ${statement.slice(0, 200)}`);
}

test("reads one workspace by indexes, and the partitions of the period, for queries of the console", async ({
  filled: { pool, url },
}) => {
  // One workspace has so many rows that a full read of it appears in the plan.
  await pool.query(
    `insert into generations
     select 'ws_7', to_timestamp(${NOW / 1_000} - i * 2000), 'gen_many_' || i, 'req_many_' || i, 'key_' || i % 300,
       false, 'text', 'auto', 'low', 1, 1, 0, 1, case when i % 100 = 0 then 'timed_out' else 'ok' end, 'stop', 1, null
     from generate_series(0, 29999) i`,
  );
  await pool.query(
    `insert into usage select workspace_id, unit, date_trunc(unit, created_at, 'UTC'), key_id, 1, 0, 1, 1, 0, 1
       from generations, unnest(array['minute', 'hour', 'day']) as unit where workspace_id = 'ws_7'
       on conflict do nothing`,
  );
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at)
     select 'ws_' || i % 300, 'key_m' || i, convert_to('m' || i, 'UTF8'), 'ck_' || i, 'name ' || i, '{}',
       to_timestamp(${NOW / 1_000} - i) from generate_series(0, 29999) i`,
  );
  await pool.query("vacuum analyze");
  const plansOfRuns = (run: (own: Pool) => Promise<unknown>) =>
    plansOf(url, async (client) => {
      const query: Pool["query"] = async (text, values) => (await client.query(text, values && [...values])).rows;
      const own: Pool = { ...pool, query };
      for (let n = 0; n < 2; n++) await run(own);
    });
  const startTime = timestampFromDate(new Date("2026-09-30T23:00:00Z"));
  const endTime = timestampFromDate(new Date("2026-10-01T01:00:00Z"));
  const period = { startTime, endTime };
  const minutes = { ...period, interval: MetricsInterval.MINUTE };
  const list = (filter: Parameters<BackOffice["activity"]["listGenerations"]>[0]) =>
    plansOfRuns((own) => adminOf(own).activity.listGenerations({ pageSize: 20, ...filter }, OWNER));
  const failed = { case: "outcome", value: Outcome.FAILED } as const;
  const overloaded = { case: "failureCode", value: "overloaded" } as const;
  const short = [
    await list(period),
    await list({ ...period, keyId: "key_7" }),
    await list({ ...period, ended: failed }),
    await list({ ...period, level: Effort.HIGH }),
    await plansOfRuns((own) => adminOf(own).usage.getPerformance(minutes, OWNER)),
    await plansOfRuns((own) => adminOf(own).usage.getPerformance({ ...minutes, keyId: "key_7" }, OWNER)),
    await plansOfRuns((own) => adminOf(own).usage.getUsage({ ...minutes, keyId: "key_7" }, OWNER)),
    await plansOfRuns((own) => adminOf(own).credits.listLedger({ ...period, chargesOnly: true }, OWNER)),
  ];
  const long = [
    await list({}),
    await list({ keyId: "key_7" }),
    await list({ ended: failed }),
    await list({ ended: overloaded, keyId: "key_7" }),
    await plansOfRuns((own) => {
      const startTime = timestampFromDate(new Date("2026-09-25"));
      return adminOf(own).usage.listTopKeys({ startTime, endTime, pageSize: 10 }, OWNER);
    }),
    await plansOfRuns((own) => adminOf(own).keys.listKeys({ pageSize: 20 }, OWNER)),
    await plansOfRuns((own) => adminOf(own).keys.listKeys({ pageSize: 20, search: "name 77" }, OWNER)),
    await plansOfRuns((own) => adminOf(own).keys.listKeys({ pageSize: 20, withUse: true }, OWNER)),
    await plansOfRuns((own) =>
      createOwnerSessions(own)
        .authenticate(`cs_${"0".repeat(33)}`)
        .catch(() => undefined),
    ),
  ];
  // Postgres reads tables of a page or two completely, which is fine.
  const few = await pool.query<{ name: string }>(
    "select relname as name from pg_class where relkind = 'r' and reltuples < 1000",
  );
  const small = new Set(few.map(({ name }) => name));
  assert.deepEqual([...new Set([...short, ...long].flat().flatMap((plan) => faultsOfLookUp(plan, small)))], []);
  assert.deepEqual(tables(short.flat(), /^(generations|ledger|usage)_.*\d/), [
    "generations_2026_09",
    "generations_2026_10",
    "ledger_2026_09",
    "ledger_2026_10",
    "usage_minute_2026_09",
    "usage_minute_2026_10",
  ]);
});

base("reads the audit by its indexes, a bounded number of rows for each page", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) select 'ws_' || i, 'ws_' || i from generate_series(0, 9) i");
  await pool.query(
    `insert into audit (workspace_id, at, actor_kind, actor_id, action)
     select 'ws_' || i % 10, to_timestamp(${NOW / 1_000} - i), 'owner', '', 'a.b'
     from generate_series(0, 29999) i`,
  );
  await pool.query("vacuum analyze");
  const period = { startTime: timestampFromDate(new Date(NOW - 3_600_000)) };
  const filters = [{}, period, { action: "key" }, { actorKind: ActorKind.MEMBER }, { ...period, actorId: "x" }];
  for (const filter of filters) {
    for (const actor of [OWNER, { kind: "operator", id: "tok_1" }] as const) {
      const plans = await plansOf(url, async (client) => {
        const query: Pool["query"] = async (text, values) => (await client.query(text, values && [...values])).rows;
        await adminOf({ ...pool, query }).activity.listAudit({ pageSize: 20, ...filter }, actor);
      });
      const scans = plans.flatMap(({ scans }) => scans).filter(({ table }) => table === "audit");
      const place = `${actor.kind} ${Object.keys(filter)}: ${JSON.stringify(scans)}`;
      assert.equal(scans.length, 1, place);
      assert.equal(scans[0]?.index, actor.kind === "owner" ? "audit_pkey" : "audit_time", place);
      const isSearched = "action" in filter || "actorKind" in filter || "actorId" in filter;
      assert.ok(Number(scans[0]?.rows) <= (isSearched ? 10_000 : 21), place);
    }
  }
});
