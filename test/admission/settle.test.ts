import assert from "node:assert/strict";
import { test } from "vitest";
import type { LeaseRequest, Settlement } from "../../src/admission/lease.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import {
  type Account,
  accountOf,
  answered,
  ask,
  checkBooks,
  FAILED,
  makeAccount,
  makeFolder,
  makeReplica,
} from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { postOf, recordIn } from "../helpers/exchange.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

const ADMITTED_AT = new Date("2026-05-06T07:08:09.123Z");

/** Hold of `ask` and price of `answered`, in micro-credits. */
const COST = 41_000;

async function setUp(t: Lifetime, account: Account, at = ADMITTED_AT.toISOString()) {
  const { pool, url } = await testDatabase(t);
  await makeAccount(pool, "ws_1", account);
  const clock = { now: Date.parse(at) };
  const replica = await makeReplica(t, pool, { clock: () => clock.now });
  const run = async (request: Partial<LeaseRequest> = {}, actual: Partial<Settlement> = {}) =>
    (await replica.take(ask("ws_1", request))).settle(answered(actual));
  return { pool, url, clock, replica, run };
}

test("charges and records an answer once and releases its hold", async (t) => {
  const { pool, clock, replica } = await setUp(t, { granted: COST, purchased: COST });
  const request = ask("ws_1");
  const lease = await replica.take(request);
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 41_000n, purchased: 41_000n, held: 41_000n, running: 1 });
  // 6 × 100 + 4 × 10 + 20 × 400
  const cost = { calls: 3, inputTokens: 60, outputTokens: 41, usd: 0.1 + 0.2 };
  const actual = answered({ outputTokens: 20, cachedTokens: 4, cost });
  assert.deepEqual(await lease.settle(actual), { credits: 0.00864 });
  assert.deepEqual(await lease.settle(answered()), { credits: 0.00864 });
  await lease[Symbol.asyncDispose]();
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 32_360n, purchased: 41_000n, held: 0n, running: 0 });
  assert.deepEqual(await pool.query("select * from generations"), [
    {
      workspace_id: "ws_1",
      created_at: new Date(clock.now),
      id: request.generationId,
      request_id: request.requestId,
      key_id: "key_1",
      streamed: false,
      shape: "text",
      effort: "auto",
      level: "low",
      input_tokens: 10n,
      output_tokens: 20n,
      cached_tokens: 4n,
      credits_micro: 8_640n,
      outcome: "ok",
      finish_reason: "stop",
      latency_ms: 13,
      model: "m",
      model_calls: 3,
      model_input_tokens: 60n,
      model_output_tokens: 41n,
      cost_usd: "0.300000000",
      ability: null,
      fingerprint: null,
      end_user: null,
      tags: null,
    },
  ]);
  const ledger = await pool.query(
    `select kind, granted_micro as g, purchased_micro as p, held_micro as h
     from ledger where reference = $1 order by id`,
    [request.requestId],
  );
  assert.deepEqual(ledger, [{ kind: "settlement", g: -8_640n, p: 0n, h: 0n }]);
  const usage = await pool.query("select unit, requests, output_tokens, credits_micro from usage order by unit");
  const row = { requests: 1n, output_tokens: 20n, credits_micro: 8_640n };
  assert.deepEqual(
    usage,
    ["day", "hour", "minute"].map((unit) => ({ unit, ...row })),
  );
  await checkBooks(pool);
});

test("charges nothing and leaves no hold for failed requests and for leases that were never settled", async (t) => {
  const { pool, replica, run } = await setUp(t, { granted: 10 * COST });
  for (const outcome of ["cut_short", "caller_gone", "upstream_failed"] as const) {
    assert.deepEqual(await run({}, { outcome }), { credits: 0 });
  }
  await assert.rejects(
    async () => {
      await using _lease = await replica.take(ask("ws_1"));
      throw new Error("the engine broke");
    },
    { message: "the engine broke" },
  );
  await assert.rejects(async () => {
    await using lease = await replica.take(ask("ws_1"));
    await lease.settle(
      answered({
        response: () => {
          throw new Error("no response");
        },
      }),
    );
  }, /no response/);
  assert.deepEqual(
    await pool.query(
      "select outcome, credits_micro as c, finish_reason as f from generations order by request_id <> '', outcome",
    ),
    [
      { outcome: "caller_gone", c: 0n, f: "stop" },
      { outcome: "cut_short", c: 0n, f: "stop" },
      { outcome: "internal", c: 0n, f: null },
      { outcome: "internal", c: 0n, f: null },
      { outcome: "upstream_failed", c: 0n, f: "stop" },
    ],
  );
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 410_000n, purchased: 0n, held: 0n, running: 0 });
  await checkBooks(pool);
});

test("distinguishes a balance that is too low from one that running requests hold", async (t) => {
  const { pool, replica } = await setUp(t, { granted: COST, purchased: COST - 1 });
  await assert.rejects(replica.take(ask("ws_1", { inputTokens: 420 })), {
    kind: "insufficient_credit",
    retryAfterMs: undefined,
    limit: undefined,
  });
  const first = await replica.take(ask("ws_1"));
  const held = { kind: "rate_limited", limit: "held_credit", retryAfterMs: 1_000 };
  await assert.rejects(replica.take(ask("ws_1")), held);
  // A hold of 40,000 micro-credits fits.
  const second = await replica.take(ask("ws_1", { inputTokens: 0, maxOutputTokens: 100 }));
  await assert.rejects(replica.take(ask("ws_1", { inputTokens: 10, maxOutputTokens: 0 })), held);
  // 40,600 of the 41,000.
  await first.settle(answered({ outputTokens: 99 }));
  await replica.take(ask("ws_1", { inputTokens: 13, maxOutputTokens: 0 }));
  await assert.rejects(replica.take(ask("ws_1")), held);
  await second.settle(answered());
  // 99 micro-credits are left besides the hold of 1,300.
  await assert.rejects(replica.take(ask("ws_1")), { kind: "insufficient_credit" });
  await assert.rejects(replica.take(ask("ws_1", { inputTokens: 1, maxOutputTokens: 0 })), held);
  await checkBooks(pool);
});

test("holds the input at the higher of its two rates, so no answer costs more than its hold", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 1_000 });
  const replica = await makeReplica(t, pool);
  const lease = await replica.take(ask("ws_1", { inputTokens: 100, rates: { input: 1, cached: 10, output: 0 } }));
  assert.equal((await accountOf(pool, "ws_1")).held, 1_000n);
  assert.deepEqual(await lease.settle(answered({ cachedTokens: 200 })), { credits: 0.001 });
});

test("counts only purchased credit in spend limits, uses granted credit first, starts weeks on Monday", async (t) => {
  // A Sunday, the last day of a month.
  const { pool, clock, run } = await setUp(
    t,
    { granted: COST + 1_000, purchased: 100 * COST, spendLimits: { day: COST, week: COST + 5_000, month: 2 * COST } },
    "2026-05-31T23:59:58Z",
  );
  await run();
  // Uses 1,000 granted and 40,000 purchased micro-credits.
  await run();
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 0n, purchased: 4_060_000n, held: 0n, running: 0 });
  await run({ maxOutputTokens: 0 }, { outputTokens: 0 });
  await assert.rejects(run({ inputTokens: 1, maxOutputTokens: 0 }), {
    kind: "spend_limit_reached",
    retryAfterMs: 2_000,
    limit: undefined,
  });
  // A new day, week and month begin.
  clock.now += 2_000;
  await run();
  await assert.rejects(run({ inputTokens: 1, maxOutputTokens: 0 }), {
    kind: "spend_limit_reached",
    retryAfterMs: 86_400_000,
  });
  clock.now += 86_400_000;
  await run({ inputTokens: 50, maxOutputTokens: 0 }, { outputTokens: 0 });
  await assert.rejects(run({ inputTokens: 1, maxOutputTokens: 0 }), {
    kind: "spend_limit_reached",
    retryAfterMs: 6 * 86_400_000,
  });
  clock.now += 6 * 86_400_000;
  await run({ inputTokens: 360, maxOutputTokens: 0 }, { outputTokens: 0 });
  await assert.rejects(run({ inputTokens: 1, maxOutputTokens: 0 }), {
    kind: "spend_limit_reached",
    retryAfterMs: 23 * 86_400_000,
  });
  // Granted credit does not count in spend limits.
  await pool.query("select book_credit('ws_1', 'grant', 'second', 41000)");
  await run();
  await checkBooks(pool);
});

test("waits for the later end where the limits of a week and a month are reached", async (t) => {
  // The week ends four days after the month.
  const start = "2026-12-30T00:00:00Z";
  const { clock, run } = await setUp(t, { purchased: 5 * COST, spendLimits: { week: COST, month: COST } }, start);
  await run();
  await assert.rejects(run(), { kind: "spend_limit_reached", retryAfterMs: 5 * 86_400_000 });
  clock.now += 5 * 86_400_000;
  await run();
  // The month ends after the week.
  await assert.rejects(run(), { kind: "spend_limit_reached", retryAfterMs: 28 * 86_400_000 });
});

test("counts holds in a spend limit, and says in a refusal whether a wait for them helps", async (t) => {
  const { pool, replica } = await setUp(t, { granted: COST, purchased: 10 * COST, spendLimits: { week: 2 * COST } });
  const leases = [await replica.take(ask("ws_1")), await replica.take(ask("ws_1")), await replica.take(ask("ws_1"))];
  const held = { kind: "rate_limited", limit: "held_credit", retryAfterMs: 1_000 };
  await assert.rejects(replica.take(ask("ws_1", { inputTokens: 1, maxOutputTokens: 0 })), held);
  // Without the holds it would use the granted credit and reach the spend limit exactly.
  await assert.rejects(replica.take(ask("ws_1", { inputTokens: 3 * 410, maxOutputTokens: 0 })), held);
  await assert.rejects(replica.take(ask("ws_1", { inputTokens: 3 * 410 + 1, maxOutputTokens: 0 })), {
    kind: "spend_limit_reached",
  });
  await leases[0]?.settle(FAILED);
  leases.push(await replica.take(ask("ws_1")));
  for (const lease of leases) await lease?.settle(answered());
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 0n, purchased: 328_000n, held: 0n, running: 0 });
  await assert.rejects(replica.take(ask("ws_1", { inputTokens: 1, maxOutputTokens: 0 })), {
    kind: "spend_limit_reached",
  });
  await checkBooks(pool);
});

test("counts a hold that is settled on the next day in the spend limit of that day", async (t) => {
  const { clock, replica, run } = await setUp(
    t,
    { purchased: 10 * COST, spendLimits: { day: 2 * COST } },
    "2026-05-06T23:59:59Z",
  );
  const early = [await replica.take(ask("ws_1")), await replica.take(ask("ws_1"))];
  clock.now += 1_000;
  await assert.rejects(run(), { kind: "rate_limited", limit: "held_credit" });
  await early[0]?.settle(answered());
  await assert.rejects(run(), { kind: "rate_limited", limit: "held_credit" });
  await early[1]?.settle(FAILED);
  await run();
  await assert.rejects(run(), { kind: "spend_limit_reached" });
});

test("admits exactly 100 of 1,000 concurrent requests on two replicas with a balance for 100", async (t) => {
  const { pool, url } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 33 * COST + 1, purchased: 67 * COST - 1 });
  const other = openPool(url);
  const replicas = [await makeReplica(t, pool, { id: "r1", url }), await makeReplica(t, other, { id: "r2", url })];
  const results = await Promise.allSettled(
    Array.from({ length: 1_000 }, async (_, i) => {
      const lease = await replicas[i % 2]?.take(ask("ws_1"));
      assert.ok(lease);
      return lease.settle(answered());
    }),
  );
  const charged = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.credits] : []));
  const refusals = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  assert.deepEqual(
    charged,
    Array.from({ length: 100 }, () => COST / 1e6),
  );
  for (const { kind, limit } of refusals) {
    assert.ok(
      kind === "insufficient_credit" || (kind === "rate_limited" && limit === "held_credit"),
      `${kind} ${limit}`,
    );
  }
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 0n, purchased: 0n, held: 0n, running: 0 });
  await checkBooks(pool);
  await other.end();
});

test("charges a settlement once that is sent again, also when another one is sent with it", async (t) => {
  const { pool } = await setUp(t, { granted: 10 * COST });
  const again = (charge: number, rest = {}) => ({
    ...postOf("req_1", { charge, ...rest }, ADMITTED_AT),
    admittedBy: "r1",
  });
  await recordIn(pool, "ws_1", [again(COST)]);
  const after = await accountOf(pool, "ws_1");
  assert.equal(after.granted, BigInt(9 * COST));
  await recordIn(pool, "ws_1", [again(COST)]);
  await recordIn(pool, "ws_1", [again(5, { outcome: "internal" }), postOf("req_2", { charge: 0 })]);
  assert.deepEqual(await accountOf(pool, "ws_1"), after);
  await checkBooks(pool);
  // Charges nothing for a workspace that does not exist.
  await recordIn(pool, "ws_9", [again(COST)]);
});

test("charges an answer of the journal whose grant has ended up to the balance and the spend limits", async (t) => {
  for (const [name, account, others, charged] of [
    ["room for all", { granted: 10 * COST }, 0, COST],
    ["held by others", { granted: 10_000, purchased: COST + 10_000 }, 1, 20_000],
    ["spend limit", { granted: 1_000, purchased: 10 * COST, spendLimits: { day: COST, month: 2 * COST } }, 0, COST],
    ["spend limit and others", { granted: 1_000, purchased: 10 * COST, spendLimits: { week: COST + 5_000 } }, 1, 6_000],
    ["nothing left", { granted: COST }, 1, 0],
  ] as const) {
    const { pool, replica } = await setUp(t, account);
    const leases = [];
    for (let i = 0; i < others; i++) leases.push(await replica.take(ask("ws_1")));
    const late = { ...postOf("req_late", { charge: COST }, ADMITTED_AT), admittedBy: "r9" };
    await recordIn(pool, "ws_1", [late], ADMITTED_AT);
    const [row] = await pool.query<{ charge: bigint }>(
      "select credits_micro as charge from generations where request_id = 'req_late'",
    );
    assert.equal(row?.charge, BigInt(charged), name);
    await checkBooks(pool);
    assert.equal((await accountOf(pool, "ws_1")).running, others);
    // The other requests keep their holds, and no spend limit is exceeded.
    for (const lease of leases) assert.deepEqual(await lease.settle(answered()), { credits: COST / 1e6 }, name);
    await checkBooks(pool);
    const [spent] = await pool.query<{ spent: bigint[] }>("select spent_micro as spent from periods");
    const limits = "spendLimits" in account ? account.spendLimits : {};
    for (const [i, unit] of ["day", "week", "month"].entries()) {
      const most = (limits as Record<string, number>)[unit] ?? Number.POSITIVE_INFINITY;
      assert.ok(Number(spent?.spent[i + 1]) <= most, `${name}: ${unit}`);
    }
  }
});

test("records unknown costs as null, not as zero", async (t) => {
  const { pool, run } = await setUp(t, { granted: 10 * COST });
  await run({}, { cost: { calls: 0, inputTokens: 0, outputTokens: 0, usd: undefined } });
  await run({}, { cost: { calls: 1, inputTokens: 2, outputTokens: 3, usd: 1e-9 } });
  // As a settlement of an earlier version that was in the journal.
  await run();
  assert.deepEqual(
    await pool.query(
      `select model_calls as n, model_input_tokens as i, model_output_tokens as o, cost_usd as usd
       from generations order by n`,
    ),
    [
      { n: 0, i: 0n, o: 0n, usd: null },
      { n: 1, i: 2n, o: 3n, usd: "0.000000001" },
      { n: null, i: null, o: null, usd: null },
    ],
  );
  await checkBooks(pool);
});

test("settles the rest of a batch when the database refuses one settlement", async (t) => {
  const { pool, replica } = await setUp(t, { granted: 10 * COST });
  const requests = [ask("ws_1"), ask("ws_1"), ask("ws_1")];
  const leases = await Promise.all(requests.map((request) => replica.take(request)));
  const results = await Promise.allSettled(
    // Postgres cannot store this character in a text.
    leases.map((lease, i) => lease.settle(answered(i === 1 ? { model: "\u0000" } : {}))),
  );
  // The first settlement is sent alone; the others wait and are sent together.
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 328_000n, purchased: 0n, held: 0n, running: 0 });
  await checkBooks(pool);
});

test("keeps settlements in the journal during a database outage and writes each once afterwards", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10 * COST });
  await makeAccount(pool, "ws_2", { granted: 10 * COST });
  const link = { away: false, lose: false };
  const flaky: Pool = {
    ...pool,
    query: async (text, values) => {
      if (link.away) throw Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" });
      const rows = await pool.query(text, values);
      if (link.lose) throw new Error("Connection terminated unexpectedly");
      return rows as never;
    },
  };
  const replica = await makeReplica(t, flaky);
  const take = (workspace: string) => replica.take(ask(workspace));
  const leases = [await take("ws_1"), await take("ws_2"), await take("ws_1"), await take("ws_1")];
  // The statement is executed, but its result is lost.
  link.lose = true;
  assert.deepEqual(await leases[0]?.settle(answered()), { credits: 0.041 });
  link.away = true;
  await assert.rejects(take("ws_1"), { kind: "overloaded", retryAfterMs: 1_000 });
  assert.deepEqual(await leases[1]?.settle(answered()), { credits: 0.041 });
  assert.deepEqual(await leases[2]?.settle(FAILED), { credits: 0 });
  assert.deepEqual(await accountOf(pool, "ws_1"), { granted: 369_000n, purchased: 0n, held: 82_000n, running: 2 });
  link.away = false;
  link.lose = false;
  // New settlements do not wait for those in the journal.
  assert.deepEqual(await leases[3]?.settle(answered()), { credits: 0.041 });
  const figures = async () => [await accountOf(pool, "ws_1"), await accountOf(pool, "ws_2")];
  await until(async () => (await figures()).every(({ running }) => running === 0));
  assert.deepEqual(await figures(), [
    { granted: 328_000n, purchased: 0n, held: 0n, running: 0 },
    { granted: 369_000n, purchased: 0n, held: 0n, running: 0 },
  ]);
  await checkBooks(pool);
});

test("settles entries in the journal of a process that died when the next process starts", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10 * COST });
  const folder = await makeFolder(t);
  const link = { away: false };
  const flaky: Pool = {
    ...pool,
    query: async (text, values) => {
      if (link.away) throw new Error("Connection terminated unexpectedly");
      return (await pool.query(text, values)) as never;
    },
  };
  const stopped = await makeReplica(t, flaky, { id: "r1", folder });
  const leases = [await stopped.take(ask("ws_1")), await stopped.take(ask("ws_1"))];
  link.away = true;
  for (const [i, lease] of leases.entries()) await lease.settle(answered({ outputTokens: 50 + 50 * i }));
  await pool.query("select end_grants('ws_1', 'r1')");
  await makeReplica(t, pool, { id: "r2", folder });
  await until(async () => (await accountOf(pool, "ws_1")).granted === 348_000n);
  await checkBooks(pool);
});
