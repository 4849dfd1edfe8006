import assert from "node:assert/strict";
import { test } from "vitest";
import { createActivity, type GenerationFilter } from "../../src/admin/activity.ts";
import { createKeys } from "../../src/admin/keys/keys.ts";
import { createUsage } from "../../src/admin/usage/usage.ts";
import { arrangePartitions } from "../../src/store/partitions.ts";
import type { Pool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

const OPERATOR = { kind: "operator", id: "tok_operator" } as const;
const START = Date.UTC(2026, 9, 31, 23);

/** Writes requests of two workspaces, three in each second, across the end of a month. */
async function open(t: Lifetime, count = 3_000) {
  const { pool } = await testDatabase(t);
  for (const time of [START, START + 2 * 3_600_000]) await arrangePartitions(pool, time, 36_500);
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one'), ('ws_2', 'two')");
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes)
     select 'ws_1', 'key_' || i, convert_to('k' || i, 'UTF8'), 'ck_' || i, 'name ' || i, '{}'
     from generate_series(0, 9) i`,
  );
  await fill(pool, count);
  return { pool, activity: createActivity(pool), usage: createUsage(pool) };
}

async function fill(pool: Pool, count: number): Promise<void> {
  await pool.query(
    `insert into generations
     select case when i % 7 = 6 then 'ws_2' else 'ws_1' end, to_timestamp(${START / 1_000} + i / 3),
       'gen_' || i, 'req_' || i, 'key_' || i % 10, i % 2 = 0, 'text', 'auto',
       case when i = 5 then 'high' else 'low' end, 10, 20, 5, 1500000,
       case when i % 50 = 0 then 'upstream_failed' when i % 75 = 1 then 'caller_gone' else 'ok' end,
       case when i % 50 <> 0 then 'stop' end, i % 1000, 'secret-model', nullif(i % 5, 0)
     from generate_series(0, ${count - 1}) i`,
  );
  await pool.query("analyze");
}

async function all(activity: ReturnType<typeof createActivity>, filter: GenerationFilter, pageSize: number) {
  const found: string[] = [];
  let pages = 0;
  for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
    const page = await activity.generations(OPERATOR, { workspace: "one", pageSize, pageToken, ...filter });
    assert.ok(page.generations.length <= pageSize);
    found.push(...page.generations.map(({ id }) => id));
    assert.equal(page.searchedTo === undefined, page.nextPageToken === undefined);
    pageToken = page.nextPageToken;
    assert.ok(++pages < 100);
  }
  return { found, pages };
}

test("pages through every request of a workspace once, newest first, across the end of a month", async (t) => {
  const { activity } = await open(t);
  const { found, pages } = await all(activity, {}, 100);
  const expected = Array.from({ length: 3_000 }, (_, i) => i).filter((i) => i % 7 !== 6);
  assert.equal(pages, Math.ceil(expected.length / 100));
  // Requests of the same second are ordered by identifier.
  const order = expected.toSorted(
    (a, b) => Math.floor(b / 3) - Math.floor(a / 3) || (`gen_${a}` < `gen_${b}` ? 1 : -1),
  );
  assert.deepEqual(
    found,
    order.map((i) => `gen_${i}`),
  );
});

test("returns a request with its key and figures, without the fields for operators", async (t) => {
  const { activity } = await open(t, 10);
  const { generations } = await activity.generations(OPERATOR, { workspace: "one", keyId: "key_9" });
  assert.deepEqual(generations, [
    {
      id: "gen_9",
      requestId: "req_9",
      at: new Date(START + 3_000),
      keyId: "key_9",
      keyName: "name 9",
      streamed: false,
      shape: "text",
      effort: "auto",
      level: "low",
      inputTokens: 10n,
      outputTokens: 20n,
      cachedTokens: 5n,
      charged: 1_500_000n,
      latencyMs: 9,
      outcome: "ok",
      finishReason: "stop",
      modelCalls: 4,
    },
  ]);
});

test("returns the requests that match all filters", async (t) => {
  const { activity } = await open(t);
  const own = Array.from({ length: 3_000 }, (_, i) => i).filter((i) => i % 7 !== 6);
  const failed = (i: number) => i % 50 === 0;
  const left = (i: number) => !failed(i) && i % 75 === 1;
  const cases: [GenerationFilter, (i: number) => boolean][] = [
    [{ keyId: "key_3" }, (i) => i % 10 === 3],
    [{ outcome: "ok" }, (i) => !failed(i) && !left(i)],
    [{ outcome: "upstream_failed" }, failed],
    [{ outcome: "caller_gone" }, left],
    [{ outcome: "failed" }, (i) => failed(i) || (left(i) && i % 2 === 1)],
    [{ outcome: "failed", keyId: "key_0" }, (i) => failed(i) && i % 10 === 0],
    [{ level: "high" }, (i) => i === 5],
    [{ level: "medium" }, () => false],
    [{ outcome: "timed_out" }, () => false],
    [{ from: new Date(START + 100_000), to: new Date(START + 200_000), level: "low" }, (i) => i >= 300 && i < 600],
    [{ keyId: "key_none" }, () => false],
  ];
  for (const [filter, keeps] of cases) {
    const { found } = await all(activity, filter, 1_000);
    const expected = own.filter(keeps).map((i) => `gen_${i}`);
    assert.deepEqual(found.toSorted(), expected.toSorted(), JSON.stringify(filter));
  }
});

test("searches in bounded steps, and ends, when few requests match a filter", async (t) => {
  const { activity } = await open(t, 30_000);
  const first = await activity.generations(OPERATOR, { workspace: "one", level: "high" });
  assert.deepEqual(first.generations, []);
  assert.ok(first.nextPageToken && first.searchedTo);
  const { found, pages } = await all(activity, { level: "high" }, 100);
  assert.deepEqual(found, ["gen_5"]);
  assert.equal(pages, 3);
});

test("refuses an invalid filter and names its field", async (t) => {
  const { activity } = await open(t, 1);
  for (const [request, field] of [
    [{ level: "extreme" }, "level"],
    [{ outcome: "'; drop table generations" }, "outcome"],
    [{ keyId: "\0" }, "key_id"],
    [{ pageSize: 1_001 }, "page_size"],
    [{ pageToken: "nonsense" }, "page_token"],
  ] as const) {
    await assert.rejects(activity.generations(OPERATOR, { workspace: "one", ...request }), {
      kind: "invalid_request",
      field,
    });
  }
});

test("returns the audit in pages, newest first", async (t) => {
  const { pool, activity } = await open(t, 1);
  await pool.query(
    `insert into audit (workspace_id, at, actor_kind, actor_id, action, details)
     select 'ws_1', to_timestamp(${START / 1_000} + i / 3 + 0.000001), 'owner', 'tok_1', 'test.' || i, '{"name": "<b>"}'
     from generate_series(0, 249) i`,
  );
  const actions: string[] = [];
  for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
    const page = await activity.audit(OPERATOR, { workspace: "one", pageSize: 100, pageToken });
    actions.push(...page.entries.map(({ action }) => action));
    assert.equal(page.entries[0]?.details, '{"name": "<b>"}');
    pageToken = page.nextPageToken;
  }
  assert.deepEqual(
    actions,
    Array.from({ length: 250 }, (_, i) => `test.${249 - i}`),
  );
  assert.deepEqual((await activity.audit(OPERATOR, { workspace: "two" })).entries, []);
});

test("computes latencies and failures from the requests of each interval", async (t) => {
  const { usage } = await open(t);
  const period = { workspaceId: "ws_1", from: new Date(START + 1), to: new Date(START + 1_000_000) };
  const { from, total, series } = await usage.performance({ ...period, interval: "minute", keyId: undefined });
  assert.equal(from.getTime(), START);
  const own = Array.from({ length: 3_000 }, (_, i) => i).filter((i) => i % 7 !== 6);
  const expected = (numbers: number[]) => {
    const failures = numbers.filter((i) => i % 50 === 0).length;
    const left = numbers.filter((i) => i % 50 !== 0 && i % 75 === 1 && i % 2 === 1).length;
    const latencies = numbers
      .filter((i) => i % 50 !== 0 && !(i % 75 === 1 && i % 2 === 1))
      .map((i) => i % 1_000)
      .toSorted((a, b) => a - b);
    return {
      p50: latencies[Math.ceil(latencies.length * 0.5) - 1],
      p95: latencies[Math.ceil(latencies.length * 0.95) - 1],
      failures: [
        ...(failures > 0 ? [{ kind: "upstream_failed", requests: BigInt(failures) }] : []),
        ...(left > 0 ? [{ kind: "caller_gone", requests: BigInt(left) }] : []),
      ],
    };
  };
  assert.deepEqual(total, expected(own));
  assert.equal(series.length, 17);
  const second = own.filter((i) => i >= 180 && i < 360);
  assert.deepEqual(series[1], { start: new Date(START + 60_000), ...expected(second) });

  const ofKey = await usage.performance({ ...period, interval: "hour", keyId: "key_1" });
  assert.deepEqual(ofKey.total, expected(own.filter((i) => i % 10 === 1)));
  assert.deepEqual((await usage.performance({ ...period, interval: "day", keyId: "key_none" })).series, []);
});

test("refuses a period that is empty, too long or split into too many intervals", async (t) => {
  const { usage } = await open(t, 1);
  const ask = (from: number, to: number, interval: "minute" | "hour" | "day") =>
    usage.performance({ workspaceId: "ws_1", from: new Date(from), to: new Date(to), interval, keyId: undefined });
  await assert.rejects(ask(START, START, "hour"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask(Number.NaN, START, "hour"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask(START, START + 93 * 86_400_000, "day"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask(START, START + 801 * 60_000, "minute"), { kind: "invalid_request", field: "interval" });
});

test("lists many keys in pages and finds them by the start of their name or secret", async (t) => {
  const { pool } = await open(t, 1);
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, revoked_at)
     select 'ws_2', 'key_' || to_hex(i), convert_to('m' || i, 'UTF8'), 'ck_' || lpad(i::text, 6, '0'),
       case when i % 100 = 0 then 'Special_100% ' else 'worker ' end || i, '{}',
       to_timestamp(${START / 1_000} + i / 5), case when i % 2 = 0 then now() end
     from generate_series(100000, 109999) i`,
  );
  const keys = createKeys(pool);
  const collect = async (request: { search?: string; activeOnly?: boolean }) => {
    const found: string[] = [];
    for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
      const page = await keys.list(OPERATOR, { workspace: "two", pageSize: 1_000, pageToken, ...request });
      found.push(...page.keys.map(({ name }) => name));
      pageToken = page.nextPageToken;
    }
    return found;
  };
  assert.equal(new Set(await collect({})).size, 10_000);
  assert.equal((await collect({ activeOnly: true })).length, 5_000);
  assert.equal((await collect({ search: "sPECIAL_100%" })).length, 100);
  assert.equal((await collect({ search: "special%" })).length, 0, "% is no wildcard");
  assert.equal((await collect({ search: "worker 10000", activeOnly: true })).length, 5);
  assert.deepEqual(await collect({ search: "ck_104321" }), ["worker 104321"]);
  const { secret, name } = await keys.create(OPERATOR, { workspace: "two", name: "by secret" });
  assert.deepEqual(await collect({ search: secret }), [name]);
});

test("reads a key's last use, its figures and the top keys from the rollups", async (t) => {
  const { pool, usage } = await open(t, 1);
  const now = Date.UTC(2026, 10, 20, 12, 34, 56);
  const add = (unit: string, start: string, key: string, credits: number) =>
    pool.query("insert into usage values ('ws_1', $1, $2, $3, 2, 1, 10, 20, 5, $4)", [unit, start, key, credits]);
  await add("day", "2026-11-20T00:00:00Z", "key_1", 3_000_000);
  await add("hour", "2026-11-20T12:00:00Z", "key_1", 3_000_000);
  await add("minute", "2026-11-20T12:30:00Z", "key_1", 3_000_000);
  await add("day", "2026-10-22T00:00:00Z", "key_1", 1_000_000);
  await add("day", "2026-10-21T00:00:00Z", "key_1", 8_000_000);
  await add("day", "2025-01-01T00:00:00Z", "key_2", 7_000_000);
  await add("day", "2026-11-01T00:00:00Z", "key_3", 9_000_000);
  await pool.query("insert into usage values ('ws_2', 'day', '2026-11-20', 'key_4', 2, 1, 10, 20, 5, 99000000)");
  const keys = createKeys(pool, () => now);
  const { keys: listed } = await keys.list(OPERATOR, { workspace: "one" });
  const use = await keys.use(listed);
  assert.equal(use.size, 10);
  assert.deepEqual(use.get("key_1"), {
    lastUsedAt: new Date("2026-11-20T12:30:00Z"),
    from: new Date("2026-10-22T00:00:00Z"),
    requests: 4n,
    failedRequests: 2n,
    inputTokens: 20n,
    outputTokens: 40n,
    charged: 4_000_000n,
  });
  assert.deepEqual(use.get("key_2")?.lastUsedAt, new Date("2025-01-01T00:00:00Z"));
  assert.equal(use.get("key_2")?.charged, 0n);
  assert.equal(use.get("key_4")?.lastUsedAt, null, "does not show the use of another workspace");

  const month = { workspaceId: "ws_1", from: new Date(now - 30 * 86_400_000), to: new Date(now) };
  const top = await usage.topKeys({ ...month, count: 0 });
  assert.deepEqual(
    top.map(({ keyId, keyName, totals }) => [keyId, keyName, totals.credits, totals.requests]),
    [
      ["key_1", "name 1", 12, 6],
      ["key_3", "name 3", 9, 2],
    ],
  );
  assert.equal((await usage.topKeys({ ...month, count: 1 })).length, 1);
  await assert.rejects(usage.topKeys({ ...month, count: 101 }), { kind: "invalid_request", field: "page_size" });
  const own = await usage.metrics({ ...month, interval: "day", byKey: false, keyId: "key_3" });
  assert.equal(own.totals.credits, 9);
  assert.equal(own.series.length, 1);
});
