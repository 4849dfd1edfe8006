import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { priceOf } from "../../src/admission/price.ts";
import { Failure } from "../../src/contract/failure.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import {
  type Account,
  accountOf,
  answered,
  ask,
  checkBooks,
  FAILED,
  keyOf,
  makeAccount,
  makeReplica,
  type Replica,
} from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

const RICH = { granted: 1_000_000_000_000 };
/** When a request was authenticated whose key has to be checked again. */
const LONG_AGO = Number.NEGATIVE_INFINITY;

const UNITS = ["minute", "day", "month"] as const;

/** One workspace `ws_1`, one replica, and a clock that the test sets. */
async function setUp(t: Lifetime, account: Account = RICH, at = "2026-05-06T07:08:09.123Z") {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", account);
  const clock = { now: Date.parse(at) };
  const replica = await makeReplica(t, pool, { clock: () => clock.now });
  return { pool, clock, replica };
}

/** Returns kind, limit and wait of the refusal that `request` ends with. */
async function refused(request: Promise<unknown>): Promise<Record<string, unknown>> {
  const error = await request.then(
    () => assert.fail("the request was admitted"),
    (error) => error,
  );
  assert.equal(error.name, "Failure", error.stack);
  const { kind, limit, retryAfterMs } = error;
  return { kind, ...(limit === undefined ? {} : { limit }), ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

async function runThrough(replica: Replica, outputTokens = 100): Promise<void> {
  await (await replica.take(ask("ws_1"))).settle(answered({ outputTokens }));
}

test("counts requests per minute, day and month at admission, until their window ends", async (t) => {
  for (const [unit, rest] of [
    ["minute", 29_750],
    ["day", 29_750],
    ["month", 86_400_000 + 29_750],
  ] as const) {
    const { clock, replica } = await setUp(
      t,
      { ...RICH, limits: { [`requests_per_${unit}`]: 2 } },
      "2028-02-28T23:59:30.250Z",
    );
    await runThrough(replica);
    // A failed request counts too.
    await (await replica.take(ask("ws_1"))).settle(FAILED);
    const refusal = { kind: "rate_limited", limit: `requests_per_${unit}`, retryAfterMs: rest };
    assert.deepEqual(await refused(replica.take(ask("ws_1"))), refusal);
    clock.now += rest - 1;
    assert.deepEqual(await refused(replica.take(ask("ws_1"))), { ...refusal, retryAfterMs: 1 });
    clock.now += 1;
    await runThrough(replica);
    await runThrough(replica);
    assert.equal((await refused(replica.take(ask("ws_1")))).limit, `requests_per_${unit}`);
  }
});

test("counts input tokens at admission and refuses a request that exceeds the rest of a window", async (t) => {
  for (const unit of UNITS) {
    const { clock, replica } = await setUp(
      t,
      { ...RICH, limits: { [`input_tokens_per_${unit}`]: 25 } },
      "2026-12-31T23:59:59.000Z",
    );
    await replica.take(ask("ws_1", { inputTokens: 10 }));
    await replica.take(ask("ws_1", { inputTokens: 10 }));
    const refusal = { kind: "rate_limited", limit: `input_tokens_per_${unit}`, retryAfterMs: 1_000 };
    assert.deepEqual(await refused(replica.take(ask("ws_1", { inputTokens: 6 }))), refusal);
    await replica.take(ask("ws_1", { inputTokens: 5 }));
    assert.deepEqual(await refused(replica.take(ask("ws_1", { inputTokens: 1 }))), refusal);
    await replica.take(ask("ws_1", { inputTokens: 0 }));
    clock.now += 1_000;
    await replica.take(ask("ws_1", { inputTokens: 25 }));
  }
});

test("counts output tokens when an answer ends, and admits requests below the limit", async (t) => {
  for (const unit of UNITS) {
    const { clock, replica } = await setUp(
      t,
      { ...RICH, limits: { [`output_tokens_per_${unit}`]: 150 } },
      "2024-02-29T23:59:59.900Z",
    );
    const early = [await replica.take(ask("ws_1")), await replica.take(ask("ws_1")), await replica.take(ask("ws_1"))];
    await early[0]?.settle(answered());
    await runThrough(replica, 49);
    await runThrough(replica, 1);
    const refusal = { kind: "rate_limited", limit: `output_tokens_per_${unit}`, retryAfterMs: 100 };
    assert.deepEqual(await refused(replica.take(ask("ws_1"))), refusal);
    await early[1]?.settle(answered());
    clock.now += 100;
    // The output counts in the window in which the answer ends.
    await early[2]?.settle(answered({ outputTokens: 149 }));
    await runThrough(replica, 1);
    assert.equal((await refused(replica.take(ask("ws_1")))).limit, `output_tokens_per_${unit}`);
  }
});

test("admits concurrent requests up to the limit, and one more for each that ends", async (t) => {
  const { pool, replica } = await setUp(t, { ...RICH, limits: { concurrent_requests: 2 } });
  const leases = [await replica.take(ask("ws_1")), await replica.take(ask("ws_1"))];
  const refusal = { kind: "rate_limited", limit: "concurrent_requests", retryAfterMs: 1_000 };
  assert.deepEqual(await refused(replica.take(ask("ws_1"))), refusal);
  await leases[0]?.settle(answered());
  const third = await replica.take(ask("ws_1"));
  assert.deepEqual(await refused(replica.take(ask("ws_1"))), refusal);
  await leases[1]?.settle(FAILED);
  await third[Symbol.asyncDispose]();
  assert.equal((await accountOf(pool, "ws_1")).running, 0);
  await replica.take(ask("ws_1"));
});

test("computes exact waits at the ends of minutes, days, weeks, months, years and leap days", async (t) => {
  const { pool } = await testDatabase(t);
  const check = async (unit: string, at: number, end: number) => {
    const [row] = await pool.query<{ rest: string }>("select ms_left_in_period($1, $2, $2) as rest", [
      unit,
      new Date(at),
    ]);
    assert.equal(Number(row?.rest), end - at, `${unit} of ${new Date(at).toISOString()}`);
  };
  for (const [unit, at, end] of [
    ["minute", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"],
    ["day", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"],
    ["month", "2027-02-28T12:00:00Z", "2027-03-01T00:00:00Z"],
    ["month", "2028-02-28T12:00:00Z", "2028-03-01T00:00:00Z"],
    ["day", "2028-02-28T12:00:00Z", "2028-02-29T00:00:00Z"],
    ["month", "2100-02-28T23:59:59.999Z", "2100-03-01T00:00:00Z"],
    ["month", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
    // Sunday, Monday, and the week across a year's end.
    ["week", "2026-11-22T23:59:59.999Z", "2026-11-23T00:00:00Z"],
    ["week", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"],
    ["week", "2026-12-31T10:00:00Z", "2027-01-04T00:00:00Z"],
  ] as const) {
    await check(unit, Date.parse(at), Date.parse(end));
  }
  const day = 86_400_000;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: Date.UTC(2200, 0) }), async (at) => {
      const [year, month] = [new Date(at).getUTCFullYear(), new Date(at).getUTCMonth()];
      const today = Math.floor(at / day);
      // 1 January 1970 was a Thursday.
      const monday = (today - ((today + 3) % 7)) * day;
      await check("minute", at, (Math.floor(at / 60_000) + 1) * 60_000);
      await check("day", at, (today + 1) * day);
      await check("week", at, monday + 7 * day);
      await check("month", at, Date.UTC(year, month + 1));
    }),
    { numRuns: 100 },
  );
});

test("keeps windows in UTC when the connection has another time zone", async (t) => {
  const { pool } = await testDatabase(t);
  await pool.query(
    `do $$ begin
       execute format('alter database %I set timezone = %L', current_database(), 'Pacific/Auckland');
     end $$`,
  );
  await makeAccount(pool, "ws_1", { ...RICH, limits: { requests_per_day: 1, requests_per_minute: 1 } });
  const [row] = await pool.query<{ zone: string }>("show timezone");
  assert.ok(row);
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()`,
  );
  const replica = await makeReplica(t, pool, { clock: () => Date.parse("2026-04-05T14:30:00Z") });
  let refusal: Record<string, unknown> = {};
  // The first statements fail on closed connections, and the first request after them is admitted.
  for (let i = 0; i < 6 && refusal.kind !== "rate_limited"; i++)
    refusal = await refused(replica.take(ask("ws_1")).then(() => Promise.reject(new Failure("internal"))));
  assert.deepEqual(refusal, { kind: "rate_limited", limit: "requests_per_day", retryAfterMs: 9.5 * 3_600_000 });
});

test("names the limit with the longest wait when several refuse", async (t) => {
  const all = Object.fromEntries(
    UNITS.flatMap((unit) => ["requests", "input_tokens", "output_tokens"].map((name) => [`${name}_per_${unit}`, 0])),
  );
  const limits: Record<string, number> = { ...all, concurrent_requests: 0 };
  const { pool, replica } = await setUp(t, { granted: 1, limits, spendLimits: { day: 0, week: 0, month: 0 } });
  const named: unknown[] = [];
  for (;;) {
    const { limit, kind, retryAfterMs } = await refused(replica.take(ask("ws_1")));
    named.push(limit ?? `${kind} ${retryAfterMs}`);
    if (limit !== undefined) {
      delete limits[String(limit)];
      await pool.query("update accounts set limits = $1", [JSON.stringify(limits)]);
      continue;
    }
    if (kind === "insufficient_credit") break;
    const [period] = await pool.query<{ spend_limits: Record<string, number> }>("select spend_limits from accounts");
    const [longest] = ["month", "week", "day"].filter((unit) => unit in (period?.spend_limits ?? {}));
    await pool.query("update accounts set spend_limits = spend_limits - $1::text", [longest]);
  }
  assert.deepEqual(named, [
    ...["month", "day", "minute"].flatMap((unit) =>
      ["requests", "input_tokens", "output_tokens"].map((name) => `${name}_per_${unit}`),
    ),
    "concurrent_requests",
    ...Array(3).fill("spend_limit_reached undefined"),
    "insufficient_credit undefined",
  ]);
});

test("says in a refusal whether a wait helps, and otherwise what does", async (t) => {
  const { pool, replica } = await setUp(t, { ...RICH, limits: { input_tokens_per_minute: 100, requests_per_day: 1 } });
  const refusalOf = async (request: Parameters<typeof ask>[1]) =>
    replica.take(ask("ws_1", request)).then(
      () => "admitted",
      ({ message, retryAfterMs }: Failure) => {
        const mayHelp = !/even after a wait|highest possible cost|for a whole period/.test(message);
        assert.equal(retryAfterMs !== undefined, mayHelp, `${message}: ${retryAfterMs}`);
        return message;
      },
    );
  await replica.take(ask("ws_1"));
  assert.match(await refusalOf({}), /limit requests_per_day is reached\. Wait/);
  await pool.query(`update accounts set limits = limits - 'requests_per_day'`);
  assert.match(await refusalOf({ inputTokens: 91 }), /limit input_tokens_per_minute is reached\. Wait/);
  assert.match(
    await refusalOf({ inputTokens: 101 }),
    /limit input_tokens_per_minute does not allow this request, even after a wait/,
  );
  // A longer period that is over mends nothing here.
  await pool.query(`update accounts set limits = limits || '{"requests_per_day": 1, "concurrent_requests": 1}'`);
  assert.match(await refusalOf({ inputTokens: 101 }), /limit input_tokens_per_minute does not allow/);
  assert.match(await refusalOf({}), /limit requests_per_day is reached\. Wait/);
  await pool.query(`update accounts set limits = limits || '{"concurrent_requests": 0}'`);
  assert.match(await refusalOf({}), /limit concurrent_requests does not allow/);
  for (const limit of [
    "requests_per_month",
    "output_tokens_per_day",
    "input_tokens_per_minute",
    "concurrent_requests",
  ]) {
    await pool.query("update accounts set limits = jsonb_build_object($1::text, 0)", [limit]);
    assert.match(await refusalOf({}), new RegExp(`limit ${limit} does not allow`));
  }
  await pool.query(
    `update accounts set limits = '{}', granted_micro = 1000, purchased_micro = 100000,
       spend_limits = '{"day": 40000}'`,
  );
  const most = /more than the account owner's spend limit .* Lower max_tokens/;
  assert.match(await refusalOf({ inputTokens: 11 }), most);
  await pool.query(`update accounts set spend_limits = spend_limits || '{"month": 50000}'`);
  await pool.query("update periods set spent_micro = '{0,1,1,50000}'");
  assert.match(await refusalOf({ inputTokens: 11 }), most);
  await pool.query(`update accounts set spend_limits = spend_limits - 'month'`);
  await pool.query("update periods set spent_micro = '{0,1,1,1}'");
  assert.match(await refusalOf({}), /^The spend limit set by the account owner was reached\.$/);
  await pool.query(`update accounts set spend_limits = '{}'`);
  assert.match(
    await refusalOf({ maxOutputTokens: 32_000 }),
    /highest possible cost of this request\. Add credit or lower max_tokens/,
  );
});

test("changes nothing when it refuses a request", async (t) => {
  const limits = { requests_per_minute: 3, input_tokens_per_day: 1_000, concurrent_requests: 2 };
  const { pool, replica } = await setUp(t, { granted: 100_000, limits });
  const running = await replica.take(ask("ws_1"));
  const everything = async () => ({
    accounts: await pool.query("select * from accounts"),
    periods: await pool.query("select * from periods"),
    held: await pool.query("select credit_micro, held_micro, running, running_now, requests from grants"),
    ledger: await pool.query("select * from ledger order by id"),
    idempotency: await pool.query("select * from idempotency"),
  });
  const before = await everything();
  const idempotency = { key: "aa".repeat(32), body: "bb".repeat(32) };
  for (const request of [
    ask("ws_1", { inputTokens: 2_000, idempotency }),
    ask("ws_1", { maxOutputTokens: 200, idempotency }),
    ask("ws_1", { maxOutputTokens: 1_000, idempotency }),
    ask("ws_1", { caller: { ...ask("ws_1").caller, keyId: "key_2" }, authenticatedAt: LONG_AGO, idempotency }),
  ]) {
    await refused(replica.take(request));
  }
  assert.deepEqual(await everything(), before);
  await running.settle(answered());
  await checkBooks(pool);
});

test("admits and settles requests that come together in one statement each, in order, up to the limits", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { ...RICH, limits: { requests_per_minute: 61 } });
  let statements = 0;
  const counting: Pool = {
    ...pool,
    query: (text, values) => {
      statements++;
      return pool.query(text, values);
    },
  };
  const now = Date.now();
  const replica = await makeReplica(t, counting, { clock: () => now });
  const requests = Array.from({ length: 101 }, () => ask("ws_1"));
  const verdicts = await Promise.allSettled(requests.map((request) => replica.take(request)));
  assert.equal(statements, 2);
  assert.deepEqual(
    verdicts.map(({ status }) => status),
    requests.map((_, i) => (i < 61 ? "fulfilled" : "rejected")),
  );
  await Promise.all(verdicts.map((verdict) => verdict.status === "fulfilled" && verdict.value.settle(answered())));
  assert.equal(statements, 3);
  await checkBooks(pool);
  assert.equal((await accountOf(pool, "ws_1")).running, 0);
});

test("checks the key of a request again that was authenticated long ago", async (t) => {
  const { pool, clock, replica } = await setUp(t);
  await makeAccount(pool, "ws_2", RICH);
  const unauthenticated = { kind: "unauthenticated" };
  const late = (workspace: string, keyId = keyOf(workspace)) => {
    const caller = { ...ask(workspace).caller, keyId };
    return replica.take(ask(workspace, { caller, authenticatedAt: LONG_AGO }));
  };
  await late("ws_1");
  for (const [workspace, key] of [
    ["ws_1", "key_2"],
    ["ws_1", ""],
    ["ws_3"],
    ["ws_3'; drop table accounts; --"],
  ] as const)
    assert.deepEqual(await refused(late(workspace, key)), unauthenticated);

  await pool.query("update api_keys set expires_at = $1 where id = 'key_1'", [new Date(clock.now + 1)]);
  await late("ws_1");
  clock.now += 1;
  assert.deepEqual(await refused(late("ws_1")), unauthenticated);
  await pool.query("update api_keys set expires_at = null, revoked_at = now() where id = 'key_1'");
  assert.deepEqual(await refused(late("ws_1")), unauthenticated);
  // The look-up at authentication suffices.
  await replica.take(ask("ws_1"));
  await late("ws_2");
});

test("applies changed limits from the next request on", async (t) => {
  const { pool, replica } = await setUp(t, { ...RICH, limits: { requests_per_minute: 1 } });
  await replica.take(ask("ws_1"));
  assert.equal((await refused(replica.take(ask("ws_1")))).limit, "requests_per_minute");
  await pool.query("update accounts set limits = '{}'");
  await replica.take(ask("ws_1"));
  await pool.query(`update accounts set limits = '{"concurrent_requests": 2}'`);
  assert.equal((await refused(replica.take(ask("ws_1")))).limit, "concurrent_requests");
});

test("counts exactly up to the largest amounts that an account can hold", async (t) => {
  const most = 10n ** 18n;
  const limits = { input_tokens_per_month: Number.MAX_SAFE_INTEGER, requests_per_day: Number.MAX_SAFE_INTEGER };
  const { pool, replica } = await setUp(t, { granted: most, purchased: most, limits });
  const huge = await replica.take(ask("ws_1", { inputTokens: 10_000_000_000_000, maxOutputTokens: 0 }));
  assert.equal((await accountOf(pool, "ws_1")).held, 10n ** 15n);
  assert.equal((await huge.settle(answered({ outputTokens: 0 }))).credits, 1e9);
  assert.equal((await accountOf(pool, "ws_1")).granted, most - 10n ** 15n);
  // Amounts beyond the range of an account are refused and do not overflow.
  const refusal = await refused(replica.take(ask("ws_1", { inputTokens: 2 ** 53, maxOutputTokens: 2 ** 53 })));
  assert.equal(refusal.limit, "input_tokens_per_month");
  await pool.query("update accounts set limits = '{}'");
  for (const size of [2 ** 53, Number.MAX_VALUE]) {
    const { kind } = await refused(replica.take(ask("ws_1", { inputTokens: 2 ** 53, maxOutputTokens: size })));
    assert.equal(kind, "insufficient_credit");
  }
  await checkBooks(pool);
});

test("computes prices exactly and rounds half up once", () => {
  assert.equal(priceOf({ input: 0.145, cached: 0, output: 0 }, { input: 100, cached: 0, output: 0 }), 15n);
  assert.equal(priceOf({ input: 0.1, cached: 0.1, output: 0.1 }, { input: 2, cached: 1, output: 2 }), 0n);
  assert.equal(priceOf({ input: 0.1, cached: 0.1, output: 0.1 }, { input: 3, cached: 1, output: 2 }), 1n);
  const tokens = fc.nat(20_000_000);
  const rate = fc.nat(10_000_000_000).map((millionths) => millionths / 1e6);
  fc.assert(
    fc.property(tokens, tokens, tokens, rate, rate, rate, (uncached, cached, output, input, half, out) => {
      const exact =
        BigInt(uncached) * BigInt(Math.round(input * 1e6)) +
        BigInt(cached) * BigInt(Math.round(half * 1e6)) +
        BigInt(output) * BigInt(Math.round(out * 1e6));
      const cost = priceOf({ input, cached: half, output: out }, { input: uncached + cached, cached, output });
      assert.ok(cost * 1_000_000n - exact <= 500_000n && exact - cost * 1_000_000n < 500_000n);
    }),
  );
});

test("posts a settlement that is on its way to the database before figures are read", async (t) => {
  const { pool, url } = await testDatabase(t);
  const own = openPool(url);
  t.onTestFinished(() => own.end());
  await makeAccount(pool, "ws_1", { granted: 10_000_000 });
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  let appends = 0;
  const query: Pool["query"] = async (text, values) => {
    if (appends > 0 && text.includes("append_settlement")) {
      appends++;
      await opened;
    }
    return own.query(text, values);
  };
  const replica = await makeReplica(t, { ...own, query });
  // Enough for headroom, under which a request is admitted that the database does not know.
  for (let i = 0; i < 20; i++) await runThrough(replica);
  const lease = await replica.take(ask("ws_1"));
  appends = 1;
  const settled = lease.settle(answered());
  await until(() => appends === 2);
  const reported = replica.admission.report("ws_1");
  open();
  await reported;
  const [row] = await own.query<{ left: bigint }>("select granted_micro as left from accounts");
  assert.equal(row?.left, 10_000_000n - 21n * 41_000n);
  await settled;
});
