import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import {
  CreditQuotaSchema,
  QuotaSchema,
  QuotasResponseSchema,
  SpendPeriod,
} from "../../../gen/chorus/v1/generation_pb.js";
import { MAX_LIMIT } from "../../../src/config/tiers.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { encode } from "../../../src/transport/rest/encode.ts";
import { adminOf } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import { admitIn, settleIn } from "../../helpers/exchange.ts";

const CALLER = { workspaceId: "ws_1", workspace: "one", keyId: "key_1", scopes: ["metrics"] as const };

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
  const { quotas } = adminOf(pool, { clock: () => now.getTime() });
  const at = (time: string) => timestampFromDate(new Date(time));
  const quota = (limit: bigint, used: bigint) => ({ limit, used, remaining: limit > used ? limit - used : 0n });
  const month = at("2026-12-01T00:00:00Z");
  const expected = create(QuotasResponseSchema, {
    workspace: "one",
    tier: "2",
    asOf: timestampFromDate(now),
    windows: {
      minute: {
        resetsAt: at("2026-11-20T12:35:00Z"),
        requests: quota(5n, 2n),
        inputTokens: { used: 21n },
        outputTokens: { used: 7n },
      },
      day: {
        resetsAt: at("2026-11-21T00:00:00Z"),
        requests: { used: 2n },
        inputTokens: quota(25n, 21n),
        outputTokens: { used: 7n },
      },
      month: {
        resetsAt: month,
        requests: { used: 2n },
        inputTokens: { used: 21n },
        outputTokens: quota(3n, 7n),
      },
    },
    concurrentRequests: quota(4n, 1n),
    credit: { balance: 1.1001, held: 0.2, available: 0.9001 },
    spendLimits: [
      { period: SpendPeriod.WEEK, limit: 1.5, used: 0.8999, remaining: 0.6001, resetsAt: at("2026-11-23T00:00:00Z") },
      { period: SpendPeriod.MONTH, limit: 3, used: 0.8999, remaining: 2.1001, resetsAt: month },
    ],
  });
  assert.deepEqual(await quotas(CALLER), expected);
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
  const { quotas } = adminOf(own, { clock: () => now.getTime() });
  const used = async (at: string): Promise<number[]> => {
    now = new Date(at);
    const { windows, spendLimits } = await quotas(CALLER);
    const requests = [windows?.minute, windows?.day, windows?.month].map((window) => Number(window?.requests?.used));
    return requests.concat(spendLimits.map((limit) => limit.used));
  };
  assert.deepEqual(await used("2026-05-31T23:59:59.999Z"), [1, 1, 1, 1, 1, 1]);
  assert.deepEqual(await used("2026-06-01T00:00:00.000Z"), [0, 0, 0, 0, 0, 0]);
  await take(own, "2", new Date("2026-06-01T00:00:00.000Z"), 10, 500_000);
  assert.deepEqual(await used("2026-06-01T00:00:59.999Z"), [1, 1, 1, 0, 0, 0]);
  // The output of a request counts in the window in which the request ends.
  await settle(own, "2", new Date("2026-06-01T00:01:00.000Z"), 7, 500_000);
  assert.deepEqual(await used("2026-06-01T00:01:00.000Z"), [0, 1, 1, 0.5, 0.5, 0.5]);
  assert.equal((await quotas(CALLER)).windows?.minute?.outputTokens?.used, 7n);
  assert.deepEqual(await used("2026-06-07T23:59:59.999Z"), [0, 0, 1, 0, 0.5, 0.5]);
  assert.deepEqual(await used("2026-06-08T00:00:00.000Z"), [0, 0, 1, 0, 0, 0.5]);
  assert.deepEqual(await used("2026-07-01T00:00:00.000Z"), [0, 0, 0, 0, 0, 0]);
  const dayOf = (time?: Timestamp) => time && timestampDate(time).toISOString().slice(0, 10);
  const ends = (await quotas(CALLER)).spendLimits.map(({ resetsAt }) => dayOf(resetsAt));
  assert.deepEqual(ends, ["2026-07-02", "2026-07-06", "2026-08-01"]);
});

test("returns zeros for a workspace without an account and for one without usage", async (t) => {
  const { pool } = await testDatabase(t);
  const none = await adminOf(pool).quotas({ ...CALLER, workspaceId: "ws_none" });
  const { tier, windows, credit, spendLimits, asOf } = none;
  assert.equal(tier, "free");
  assert.deepEqual(windows?.day?.requests, create(QuotaSchema, { used: 0n }));
  assert.deepEqual(credit, create(CreditQuotaSchema, { balance: 0, held: 0, available: 0 }));
  assert.deepEqual(spendLimits, []);
  assert.ok(asOf && Math.abs(timestampDate(asOf).getTime() - Date.now()) < 60_000, "uses the clock of the database");
});

test("gives null for limits that do not exist, and nothing below zero as remaining", async (t) => {
  const { pool } = await testDatabase(t);
  await addAccount(pool, { granted_micro: 1_000_000, purchased_micro: 500_000, tier: "2" });
  const now = new Date("2026-11-20T12:34:56.789Z");
  await take(pool, "1", now, 10, 250_000);
  // What was used before the limits were set.
  await pool.query("update periods set requests = '{3,3,3,3}', spent_micro = '{0,100000,2000000,0}'");
  const output = { output_tokens_per_minute: 0, output_tokens_per_day: 0, output_tokens_per_month: 0 };
  await pool.query("update accounts set limits = $1, spend_limits = $2", [
    JSON.stringify({ requests_per_minute: 5, requests_per_day: 2, concurrent_requests: 8, ...output }),
    JSON.stringify({ day: 300_000, week: 1_000_000 }),
  ]);
  const { quotas } = adminOf(pool, { clock: () => now.getTime() });
  const json = JSON.parse(encode(QuotasResponseSchema, await quotas(CALLER)));
  const windowJson = (resets_at: string, limit: number | null, remaining: number | null) => ({
    resets_at,
    requests: { limit, used: 3, remaining },
    input_tokens: { limit: null, used: 10, remaining: null },
    output_tokens: { limit: 0, used: 0, remaining: 0 },
  });
  const day = "2026-11-21T00:00:00.000Z";
  assert.deepEqual(json, {
    workspace: "one",
    tier: "2",
    as_of: "2026-11-20T12:34:56.789Z",
    windows: {
      minute: windowJson("2026-11-20T12:35:00.000Z", 5, 2),
      day: windowJson(day, 2, 0),
      month: windowJson("2026-12-01T00:00:00.000Z", null, null),
    },
    concurrent_requests: { limit: 8, used: 1, remaining: 7 },
    credit: { balance: 1.5, held: 0.25, available: 1.25 },
    spend_limits: [
      { period: "day", limit: 0.3, used: 0.1, remaining: 0.2, resets_at: day },
      { period: "week", limit: 1, used: 2, remaining: 0, resets_at: "2026-11-23T00:00:00.000Z" },
    ],
    caps: [],
  });
});

test("counts what remains of the largest limit exactly", async (t) => {
  const { pool } = await testDatabase(t);
  await addAccount(pool, { limits: { requests_per_day: MAX_LIMIT } });
  const now = new Date("2026-11-20T12:34:56.789Z");
  await pool.query("insert into periods values ('ws_1', $1, '{4,4,4,4}', '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}')", [
    now,
  ]);
  const { windows } = await adminOf(pool, { clock: () => now.getTime() }).quotas(CALLER);
  assert.equal(windows?.day?.requests?.remaining, BigInt(MAX_LIMIT) - 4n);
});
