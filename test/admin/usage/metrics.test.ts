import assert from "node:assert/strict";
import { create, toJson } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { test } from "vitest";
import { GetServiceUsageResponseSchema } from "../../../gen/chorus/admin/v1/operations_pb.js";
import {
  GetPerformanceResponseSchema,
  GetUsageResponseSchema,
  ListTopSubjectsResponseSchema,
} from "../../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsGroupBy, MetricsIntervalSchema, MetricsRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { readMetrics } from "../../../src/admin/usage/metrics.ts";
import { numberOf } from "../../../src/contract/json-names.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { adminOf } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import { postOf, recordIn } from "../../helpers/exchange.ts";

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

type Interval = "minute" | "hour" | "day" | "month";

interface Period {
  from: Date;
  to: Date;
  interval: Interval;
  byKey: boolean;
}

type Totals = Record<
  "requests" | "failedRequests" | "inputTokens" | "outputTokens" | "cachedTokens" | "credits",
  number
>;

/** Reads metrics as plain numbers and dates. */
async function metrics(pool: Pool, workspaceId: string, { from, to, interval, byKey }: Period) {
  const { startTime, endTime, totals, series } = await readMetrics(
    pool,
    {
      startTime: timestampFromDate(from),
      endTime: timestampFromDate(to),
      interval: numberOf(MetricsIntervalSchema, interval),
      groupBy: byKey ? MetricsGroupBy.KEY : MetricsGroupBy.NONE,
      groupTag: "",
    },
    { workspaceId, keyId: "" },
  );
  assert.ok(startTime && endTime && totals);
  const points = series.map(({ start, keyId, ...point }) => {
    assert.ok(start);
    return { start: timestampDate(start), ...(keyId === undefined ? {} : { keyId }), ...numbersOf(point) };
  });
  return { from: timestampDate(startTime), to: timestampDate(endTime), totals: numbersOf(totals), series: points };
}

function numbersOf(of: Record<keyof Totals, bigint | number>): Totals {
  return {
    requests: Number(of.requests),
    failedRequests: Number(of.failedRequests),
    inputTokens: Number(of.inputTokens),
    outputTokens: Number(of.outputTokens),
    cachedTokens: Number(of.cachedTokens),
    credits: Number(of.credits),
  };
}

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
  const from = new Date("2026-03-01T10:30:00Z");
  const to = new Date("2026-03-01T12:00:00Z");
  const ten = { requests: 2, failedRequests: 0, inputTokens: 20, outputTokens: 10, cachedTokens: 8, credits: 3 };
  const eleven = { requests: 2, failedRequests: 2, inputTokens: 20, outputTokens: 10, cachedTokens: 8, credits: 0 };
  const totals = { requests: 4, failedRequests: 2, inputTokens: 40, outputTokens: 20, cachedTokens: 16, credits: 3 };
  assert.deepEqual(await metrics(pool, "ws_1", { from, to, interval: "hour", byKey: false }), {
    from: new Date("2026-03-01T10:00:00Z"),
    to,
    totals,
    series: [
      { start: new Date("2026-03-01T10:00:00Z"), ...ten },
      { start: new Date("2026-03-01T11:00:00Z"), ...eleven },
    ],
  });
  const one = { requests: 1, failedRequests: 0, inputTokens: 10, outputTokens: 5, cachedTokens: 4, credits: 1.5 };
  const split = await metrics(pool, "ws_1", { from, to, interval: "hour", byKey: true });
  assert.deepEqual(split.totals, totals);
  assert.deepEqual(split.series, [
    { start: new Date("2026-03-01T10:00:00Z"), keyId: "key_1", ...one },
    { start: new Date("2026-03-01T10:00:00Z"), keyId: "key_2", ...one },
    { start: new Date("2026-03-01T11:00:00Z"), keyId: "key_1", ...eleven },
  ]);
  const month = await metrics(pool, "ws_1", { from, to, interval: "month", byKey: false });
  assert.deepEqual(month.from, new Date("2026-03-01T00:00:00Z"));
  assert.deepEqual(month.series, [{ start: month.from, ...totals }]);
  const none = await metrics(pool, "ws_3", { from, to, interval: "day", byKey: true });
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
          const { totals, series } = await metrics(own, workspaceId, { from, to, interval, byKey });
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
  const at = (text: string): Date => new Date(text);
  const ask = (from: string, to: string, interval: Interval): Promise<unknown> =>
    metrics(pool, "ws_1", { from: at(from), to: at(to), interval, byKey: false });
  await assert.rejects(ask("2026-01-02", "2026-01-02", "day"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask("2026-01-02", "2026-01-01", "day"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask("2026-01-01", "2026-01-05", "minute"), { kind: "invalid_request", field: "interval" });
  await assert.rejects(ask("0001-01-01", "9999-12-31", "month"), { kind: "invalid_request", field: "interval" });
  await ask("2026-01-01T00:00:00Z", "2026-01-04T11:20:00Z", "minute"); // 5,000 minutes
  await ask("0001-01-01", "0400-12-31", "month");
});

test("answers with times of the years 1 to 9999 about the first and the last of these", async (t) => {
  const { pool } = await testDatabase(t);
  const { workspaces, usage, operations } = adminOf(pool);
  await workspaces.createWorkspace({ name: "default" });
  const at = (text: string) => timestampFromDate(new Date(text));
  for (const period of [
    { endTime: at("0001-01-01T01:00:00Z") },
    { startTime: at("9999-12-31T23:00:00Z"), endTime: at("9999-12-31T23:59:59.999Z") },
  ]) {
    const of = { workspace: "default", ...period };
    toJson(GetUsageResponseSchema, await usage.getUsage(of));
    toJson(GetPerformanceResponseSchema, await usage.getPerformance(of));
    toJson(ListTopSubjectsResponseSchema, await usage.listTopSubjects(of));
    toJson(GetServiceUsageResponseSchema, await operations.getServiceUsage(period));
  }
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const office = adminOf(pool);
  const caller = { workspaceId: "ws_1", workspace: "one", keyId: "key_1", scopes: [] };
  const workspace = "ws_1";
  const calls = [
    office.quotas(caller),
    office.metrics(create(MetricsRequestSchema), caller),
    office.usage.getUsage({ workspace }),
    office.usage.getQuotas({ workspace }),
    office.usage.getPerformance({ workspace }),
    office.usage.listTopKeys({ workspace }),
  ];
  await Promise.all(calls.map((call) => assert.rejects(call, { kind: "overloaded" })));
  await pool.end();
});
