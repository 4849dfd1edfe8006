import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { createUsage, type Interval, type Totals } from "../../../src/admin/usage/usage.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { testDatabase } from "../../helpers/database.ts";
import { admitIn, postOf, recordIn, settleIn } from "../../helpers/exchange.ts";

interface Row {
  at: string;
  key?: string;
  outcome?: string;
  streamed?: boolean;
}

/**
 * Settles requests as the service does. Each has 10 input, 4 cached and 5 output tokens. It costs 1.5 credits if its
 * outcome is `ok`, else nothing.
 */
async function record(pool: Pool, workspace: string, rows: readonly Row[]): Promise<void> {
  await pool.query(
    "insert into accounts (workspace_id, granted_micro) values ($1, 1000000000) on conflict do nothing",
    [workspace],
  );
  const posts = rows.map(({ at, key = "key_1", outcome = "ok", streamed = false }, i) => {
    const row = { created_at: at, key_id: key, streamed, input_tokens: 10, cached_tokens: 4, outcome };
    return postOf(`req_${i}`, { charge: outcome === "ok" ? 1_500_000 : 0, output: 5, ...row });
  });
  await recordIn(pool, workspace, posts);
}

async function addAccount(pool: Pool, values: Record<string, unknown>): Promise<void> {
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one')");
  await pool.query(
    "insert into api_keys (workspace_id, id, secret_hash, prefix, scopes) values ('ws_1', 'key_1', '', '', '{}')",
  );
  await pool.query("insert into accounts select * from jsonb_populate_record(null::accounts, $1)", [
    JSON.stringify({
      workspace_id: "ws_1",
      granted_micro: 0,
      purchased_micro: 0,
      purchased_total_micro: 0,
      overrides: {},
      tier: "free",
      limits: {},
      spend_limits: {},
      ...values,
    }),
  ]);
}

async function take(pool: Pool, id: string, at: Date, input: number, hold: number): Promise<void> {
  assert.equal(await admitIn(pool, "ws_1", `req_${id}`, { hold, input }, at), undefined);
}

async function settle(pool: Pool, id: string, at: Date, output: number, charge: number): Promise<void> {
  await settleIn(pool, "ws_1", `req_${id}`, { charge, output, input_tokens: 10 }, at);
}

test("returns limits, usage, running requests and credit, and null for a limit that is not set", async (t) => {
  const { pool } = await testDatabase(t);
  await addAccount(pool, {
    granted_micro: 100,
    purchased_micro: 2_000_000,
    tier: "2",
    limits: { requests_per_minute: 5, input_tokens_per_day: 25, output_tokens_per_month: 3, concurrent_requests: 4 },
    spend_limits: { week: 1_500_000, month: 3_000_000 },
  });
  const now = new Date("2026-11-20T12:34:56.789Z"); // a Friday
  await take(pool, "1", now, 10, 1_000_000);
  await take(pool, "2", now, 11, 200_000);
  await settle(pool, "1", now, 7, 900_000);
  const usage = createUsage(pool, () => now.getTime());
  const minute = new Date("2026-11-20T12:35:00Z");
  const day = new Date("2026-11-21T00:00:00Z");
  const month = new Date("2026-12-01T00:00:00Z");
  assert.deepEqual(await usage.quotas("ws_1"), {
    tier: "2",
    asOf: now,
    windows: {
      minute: {
        resetsAt: minute,
        requests: { limit: 5, used: 2 },
        inputTokens: { limit: null, used: 21 },
        outputTokens: { limit: null, used: 7 },
      },
      day: {
        resetsAt: day,
        requests: { limit: null, used: 2 },
        inputTokens: { limit: 25, used: 21 },
        outputTokens: { limit: null, used: 7 },
      },
      month: {
        resetsAt: month,
        requests: { limit: null, used: 2 },
        inputTokens: { limit: null, used: 21 },
        outputTokens: { limit: 3, used: 7 },
      },
    },
    concurrentRequests: { limit: 4, used: 1 },
    credit: { balance: 1.1001, held: 0.2, available: 0.9001 },
    spendLimits: [
      { period: "week", limit: 1.5, used: 0.8999, resetsAt: new Date("2026-11-23T00:00:00Z") },
      { period: "month", limit: 3, used: 0.8999, resetsAt: month },
    ],
  });
});

test("starts windows on the exact millisecond in UTC in any database time zone, and weeks on Monday", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query(`alter database ${new URL(url).pathname.slice(1)} set timezone = 'Pacific/Auckland'`);
  const own = openPool(url, { max: 1 });
  t.onTestFinished(() => own.end());
  await addAccount(own, { purchased_micro: 1_000_000_000, spend_limits: { day: 1e9, week: 1e9, month: 1e9 } });
  let now = new Date("2026-05-31T23:59:59.999Z"); // a Sunday
  await take(own, "1", now, 10, 1_000_000);
  await settle(own, "1", now, 7, 1_000_000);
  const usage = createUsage(own, () => now.getTime());
  const used = async (at: string): Promise<number[]> => {
    now = new Date(at);
    const { windows, spendLimits } = await usage.quotas("ws_1");
    const { minute, day, month } = windows;
    return [minute, day, month].map(({ requests }) => requests.used).concat(spendLimits.map((limit) => limit.used));
  };
  assert.deepEqual(await used("2026-05-31T23:59:59.999Z"), [1, 1, 1, 1, 1, 1]);
  assert.deepEqual(await used("2026-06-01T00:00:00.000Z"), [0, 0, 0, 0, 0, 0]);
  await take(own, "2", new Date("2026-06-01T00:00:00.000Z"), 10, 500_000);
  assert.deepEqual(await used("2026-06-01T00:00:59.999Z"), [1, 1, 1, 0, 0, 0]);
  // The output of a request counts in the window in which the request ends.
  await settle(own, "2", new Date("2026-06-01T00:01:00.000Z"), 7, 500_000);
  assert.deepEqual(await used("2026-06-01T00:01:00.000Z"), [0, 1, 1, 0.5, 0.5, 0.5]);
  assert.equal((await usage.quotas("ws_1")).windows.minute.outputTokens.used, 7);
  assert.deepEqual(await used("2026-06-07T23:59:59.999Z"), [0, 0, 1, 0, 0.5, 0.5]);
  assert.deepEqual(await used("2026-06-08T00:00:00.000Z"), [0, 0, 1, 0, 0, 0.5]);
  assert.deepEqual(await used("2026-07-01T00:00:00.000Z"), [0, 0, 0, 0, 0, 0]);
  const ends = (await usage.quotas("ws_1")).spendLimits.map(({ resetsAt }) => resetsAt.toISOString().slice(0, 10));
  assert.deepEqual(ends, ["2026-07-02", "2026-07-06", "2026-08-01"]);
});

test("returns zeros for a workspace without an account and for one without usage", async (t) => {
  const { pool } = await testDatabase(t);
  const { tier, windows, credit, spendLimits, asOf } = await createUsage(pool).quotas("ws_none");
  assert.equal(tier, "free");
  assert.deepEqual(windows.day.requests, { limit: null, used: 0 });
  assert.deepEqual({ credit, spendLimits }, { credit: { balance: 0, held: 0, available: 0 }, spendLimits: [] });
  assert.ok(Math.abs(asOf.getTime() - Date.now()) < 60_000, "uses the clock of the database");
});

test("returns totals and points by interval and key, and counts requests without an answer as failed", async (t) => {
  const { pool } = await testDatabase(t);
  await record(pool, "ws_1", [
    { at: "2026-03-01T10:00:00Z" },
    { at: "2026-03-01T10:59:59Z", key: "key_2" },
    { at: "2026-03-01T11:00:00Z", outcome: "timed_out" },
    { at: "2026-03-01T11:00:01Z", outcome: "caller_gone" },
    { at: "2026-03-01T11:00:02Z", outcome: "caller_gone", streamed: true },
    { at: "2026-03-01T11:00:03Z", outcome: "cut_short" },
    { at: "2026-03-01T12:00:00Z" },
  ]);
  await record(pool, "ws_2", [{ at: "2026-03-01T10:00:00Z" }]);
  const usage = createUsage(pool);
  const from = new Date("2026-03-01T10:30:00Z");
  const to = new Date("2026-03-01T12:00:00Z");
  const ten = { requests: 2, failedRequests: 0, inputTokens: 20, outputTokens: 10, cachedTokens: 8, credits: 3 };
  const eleven = { requests: 2, failedRequests: 2, inputTokens: 20, outputTokens: 10, cachedTokens: 8, credits: 0 };
  const totals = { requests: 4, failedRequests: 2, inputTokens: 40, outputTokens: 20, cachedTokens: 16, credits: 3 };
  assert.deepEqual(await usage.metrics({ workspaceId: "ws_1", from, to, interval: "hour", byKey: false }), {
    from: new Date("2026-03-01T10:00:00Z"),
    to,
    totals,
    series: [
      { start: new Date("2026-03-01T10:00:00Z"), ...ten },
      { start: new Date("2026-03-01T11:00:00Z"), ...eleven },
    ],
  });
  const one = { requests: 1, failedRequests: 0, inputTokens: 10, outputTokens: 5, cachedTokens: 4, credits: 1.5 };
  const split = await usage.metrics({ workspaceId: "ws_1", from, to, interval: "hour", byKey: true });
  assert.deepEqual(split.totals, totals);
  assert.deepEqual(split.series, [
    { start: new Date("2026-03-01T10:00:00Z"), keyId: "key_1", ...one },
    { start: new Date("2026-03-01T10:00:00Z"), keyId: "key_2", ...one },
    { start: new Date("2026-03-01T11:00:00Z"), keyId: "key_1", ...eleven },
  ]);
  const month = await usage.metrics({ workspaceId: "ws_1", from, to, interval: "month", byKey: false });
  assert.deepEqual(month.from, new Date("2026-03-01T00:00:00Z"));
  assert.deepEqual(month.series, [{ start: month.from, ...totals }]);
  const none = await usage.metrics({ workspaceId: "ws_3", from, to, interval: "day", byKey: true });
  assert.deepEqual(none.series, []);
  assert.equal(none.totals.requests, 0);
});

interface Generation {
  created_at: Date;
  key_id: string;
  streamed: boolean;
  outcome: string;
  input_tokens: bigint;
  output_tokens: bigint;
  cached_tokens: bigint;
  credits_micro: bigint;
}

/** Expected metrics, computed from the record of each request. */
function expectedMetrics(rows: Generation[], from: Date, to: Date, interval: Interval, byKey: boolean) {
  const length = { minute: 16, hour: 13, day: 10, month: 7 }[interval];
  const rest = "0001-01-01T00:00:00.000Z";
  const start = (at: Date): string => at.toISOString().slice(0, length) + rest.slice(length);
  const points = new Map<string, Totals>();
  const all: Totals = { requests: 0, failedRequests: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0, credits: 0 };
  const inRange = rows.filter(({ created_at }) => created_at >= new Date(start(from)) && created_at < to);
  for (const row of inRange) {
    const name = start(row.created_at) + (byKey ? ` ${row.key_id}` : "");
    const point = points.get(name) ?? {
      ...all,
      requests: 0,
      failedRequests: 0,
      inputTokens: 0,
      outputTokens: 0,
      cachedTokens: 0,
      credits: 0,
    };
    points.set(name, point);
    const answered =
      row.outcome === "ok" || row.outcome === "cut_short" || (row.outcome === "caller_gone" && row.streamed);
    for (const sums of [point, all]) {
      if (answered) {
        sums.requests += 1;
        sums.inputTokens += Number(row.input_tokens);
        sums.outputTokens += Number(row.output_tokens);
        sums.cachedTokens += Number(row.cached_tokens);
      } else sums.failedRequests += 1;
      sums.credits = Math.round(sums.credits * 1e6 + Number(row.credits_micro)) / 1e6;
    }
  }
  const series = [...points].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, point]) => ({ name, ...point }));
  return { totals: all, series };
}

test("sums the records of single requests into metrics for any period, interval and grouping", async (t) => {
  const { pool, url } = await testDatabase(t);
  // Partitions for two months, so that some rows are in a monthly partition and some in the default one.
  for (const [month, next] of [
    ["2026-02", "2026-03"],
    ["2026-03", "2026-04"],
  ]) {
    await pool.query(
      `create table usage_${month?.replace("-", "_")} partition of usage
       for values from ('minute', '${month}-01Z') to ('minute', '${next}-01Z')`,
    );
  }
  await pool.query(`alter database ${new URL(url).pathname.slice(1)} set timezone = 'America/St_Johns'`);
  const own = openPool(url, { max: 1 });
  t.onTestFinished(() => own.end());
  const usage = createUsage(own);
  const edges = [
    "2025-12-31T23:59:59.999Z",
    "2026-01-01T00:00:00Z",
    "2026-02-28T23:59:00Z",
    "2026-03-01T00:00:00Z",
    "2026-03-08T06:59:59Z",
  ];
  const near = fc
    .tuple(fc.constantFrom(...edges), fc.integer({ min: -200, max: 200 }))
    .map(([edge, minutes]) => Date.parse(edge) + minutes * 60_000);
  const far = fc.integer({ min: Date.UTC(2025, 10, 1), max: Date.UTC(2026, 4, 1) });
  const time = fc.oneof(near, far).map((ms) => new Date(ms));
  const row = fc.record({
    at: time.map((at) => at.toISOString()),
    key: fc.constantFrom("key_1", "key_2", "key_3"),
    outcome: fc.constantFrom("ok", "cut_short", "caller_gone", "timed_out"),
    streamed: fc.boolean(),
  });
  const period = fc.tuple(time, time, fc.constantFrom<Interval>("minute", "hour", "day", "month"), fc.boolean());
  let workspaces = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 40 }),
      fc.array(period, { minLength: 8, maxLength: 8 }),
      async (rows, periods) => {
        const workspaceId = `ws_${workspaces++}`;
        await record(own, workspaceId, rows);
        const records = await own.query<Generation>("select * from generations where workspace_id = $1", [workspaceId]);
        for (const [a, b, interval, byKey] of periods) {
          const [from, to] = a < b ? [a, b] : [b, new Date(a.getTime() + 1)];
          if (interval === "minute" && to.getTime() - from.getTime() > 4_999 * 60_000) continue;
          const end = new Date(Math.ceil(to.getTime() / 60_000) * 60_000);
          const { totals, series } = await usage.metrics({ workspaceId, from, to, interval, byKey });
          const named = series.map(({ start, keyId, ...point }) => ({
            name: start.toISOString() + (keyId === undefined ? "" : ` ${keyId}`),
            ...point,
          }));
          assert.deepEqual({ totals, series: named }, expectedMetrics(records, from, end, interval, byKey));
        }
      },
    ),
    { numRuns: 40 },
  );
});

test("refuses a period that is empty or has too many points and names the field", async (t) => {
  const { pool } = await testDatabase(t);
  const { metrics } = createUsage(pool);
  const at = (text: string): Date => new Date(text);
  const ask = (from: string, to: string, interval: Interval): Promise<unknown> =>
    metrics({ workspaceId: "ws_1", from: at(from), to: at(to), interval, byKey: false });
  await assert.rejects(ask("2026-01-02", "2026-01-02", "day"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask("2026-01-02", "2026-01-01", "day"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask("2026-01-01", "2026-01-05", "minute"), { kind: "invalid_request", field: "interval" });
  await assert.rejects(ask("0001-01-01", "9999-12-31", "month"), { kind: "invalid_request", field: "interval" });
  await ask("2026-01-01T00:00:00Z", "2026-01-04T11:20:00Z", "minute"); // 5,000 minutes
  await ask("0001-01-01", "0400-12-31", "month");
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const usage = createUsage(pool);
  await assert.rejects(usage.quotas("ws_1"), { kind: "overloaded" });
  const period = { from: new Date(0), to: new Date(1), interval: "day", byKey: false } as const;
  await assert.rejects(usage.metrics({ workspaceId: "ws_1", ...period }), { kind: "overloaded" });
  await pool.end();
});
