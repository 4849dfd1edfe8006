import assert from "node:assert/strict";
import { test } from "node:test";
import { createUsage } from "../../src/admission/usage.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";

interface Row {
  at: string;
  workspace?: string;
  key?: string;
  outcome?: string;
  streamed?: boolean;
}

/** Each row has 10 input, 4 cached and 5 output tokens and costs 1.5 credits, unless it failed. */
async function record(pool: Pool, rows: Row[]): Promise<void> {
  for (const [i, { at, workspace = "ws_1", key = "key_1", outcome = "ok", streamed = false }] of rows.entries()) {
    await pool.query(
      `insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level, input_tokens, output_tokens,
         cached_tokens, credits_micro, outcome, latency_ms) values ($1, $2, $3, $3, $4, $5, 'text', 'auto', 'low', 10, 5, 4, $6, $7, 1)`,
      [workspace, at, `gen_${i}`, key, streamed, outcome === "ok" ? 1_500_000 : 0, outcome],
    );
  }
}

test("windows are calendar windows in UTC and count one workspace", async (t) => {
  const { pool } = await testDatabase(t);
  await record(pool, [
    { at: "2026-02-28T23:59:59.999Z" },
    { at: "2026-03-01T00:00:00Z" },
    { at: "2026-03-14T23:59:59.999Z" },
    { at: "2026-03-15T00:00:00Z", outcome: "upstream_failed" },
    { at: "2026-03-15T12:33:59.999Z" },
    { at: "2026-03-15T12:34:00Z" },
    { at: "2026-03-15T12:34:59.999Z" },
    { at: "2026-03-15T12:34:30Z", workspace: "ws_2" },
    { at: "2026-04-01T00:00:00Z" },
  ]);
  const usage = createUsage(pool);
  assert.deepEqual(await usage.windows("ws_1", new Date("2026-03-15T12:34:56.789Z")), {
    minute: { resetsAt: new Date("2026-03-15T12:35:00Z"), requests: 2, inputTokens: 20, outputTokens: 10 },
    day: { resetsAt: new Date("2026-03-16T00:00:00Z"), requests: 4, inputTokens: 40, outputTokens: 20 },
    month: { resetsAt: new Date("2026-04-01T00:00:00Z"), requests: 6, inputTokens: 60, outputTokens: 30 },
  });
  assert.deepEqual((await usage.windows("ws_3", new Date("2026-12-31T23:59:59Z"))).month, {
    resetsAt: new Date("2027-01-01T00:00:00Z"),
    requests: 0,
    inputTokens: 0,
    outputTokens: 0,
  });
});

test("metrics have totals and points by interval and key; what gave no answer counts as failed", async (t) => {
  const { pool } = await testDatabase(t);
  await record(pool, [
    { at: "2026-03-01T10:00:00Z" },
    { at: "2026-03-01T10:59:59Z", key: "key_2" },
    { at: "2026-03-01T11:00:00Z", outcome: "timed_out" },
    { at: "2026-03-01T11:00:01Z", outcome: "caller_gone" },
    { at: "2026-03-01T11:00:02Z", outcome: "caller_gone", streamed: true },
    { at: "2026-03-01T11:00:03Z", outcome: "cut_short" },
    { at: "2026-03-01T12:00:00Z" },
    { at: "2026-03-01T10:00:00Z", workspace: "ws_2" },
  ]);
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

test("a period that is empty or has too many points is refused by name", async (t) => {
  const { pool } = await testDatabase(t);
  const { metrics } = createUsage(pool);
  const at = (text: string): Date => new Date(text);
  const ask = (from: string, to: string, interval: "minute" | "hour" | "day" | "month"): Promise<unknown> =>
    metrics({ workspaceId: "ws_1", from: at(from), to: at(to), interval, byKey: false });
  await assert.rejects(ask("2026-01-02", "2026-01-02", "day"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask("2026-01-02", "2026-01-01", "day"), { kind: "invalid_request", field: "from" });
  await assert.rejects(ask("2026-01-01", "2026-01-05", "minute"), { kind: "invalid_request", field: "interval" });
  await assert.rejects(ask("0001-01-01", "9999-12-31", "month"), { kind: "invalid_request", field: "interval" });
  await ask("2026-01-01T00:00:00Z", "2026-01-04T11:20:00Z", "minute"); // 5,000 minutes
  await ask("0001-01-01", "0400-12-31", "month");
});

test("with the database away usage says overloaded", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const usage = createUsage(pool);
  await assert.rejects(usage.windows("ws_1", new Date()), { kind: "overloaded" });
  await pool.end();
});
