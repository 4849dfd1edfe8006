import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { costOf, createAdmission, type LeaseRequest, type Settlement } from "../../src/admission/lease.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";

const RATES = { input: 100, cached: 10, output: 400 };
const CALLER = { workspaceId: "ws_1", workspace: "one", keyId: "key_1", scopes: ["generate"] as const };
const OK: Settlement = {
  outcome: "ok",
  outputTokens: 20,
  cachedTokens: 4,
  charged: true,
  finishReason: "stop",
  latencyMs: 12.6,
  model: "m",
};

function request(n: number): LeaseRequest {
  return {
    caller: CALLER,
    requestId: `req_${n}`,
    generationId: `gen_${n}`,
    streamed: false,
    shape: "text",
    effort: "auto",
    level: "low",
    inputTokens: 10,
    maxOutputTokens: 1_000,
  };
}

test("an answer is charged and recorded once, before settling resolves", async (t) => {
  const { pool } = await testDatabase(t);
  const now = Date.UTC(2026, 4, 6, 7, 8, 9, 123);
  const admission = createAdmission(pool, RATES, () => now);
  const lease = await admission.open(request(1));
  assert.equal(admission.running("ws_1"), 1);
  // 6 × 100 + 4 × 10 + 20 × 400 micro-credits
  assert.deepEqual(await lease.settle(OK), { credits: 0.00864 });
  const [row, ...others] = await pool.query("select * from generations");
  assert.deepEqual(others, []);
  assert.deepEqual(row, {
    workspace_id: "ws_1",
    created_at: new Date(now),
    id: "gen_1",
    request_id: "req_1",
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
  });
  assert.equal(admission.running("ws_1"), 0);
  assert.deepEqual(await lease.settle({ ...OK, outputTokens: 9_999 }), { credits: 0.00864 });
  await lease[Symbol.asyncDispose]();
  assert.equal((await pool.query("select from generations")).length, 1);
  assert.equal(admission.running("ws_1"), 0);
});

test("a lease that is left without being settled is recorded as internal, free of charge", async (t) => {
  const { pool } = await testDatabase(t);
  let now = 1_000;
  const admission = createAdmission(pool, RATES, () => now);
  await assert.rejects(
    async () => {
      await using _lease = await admission.open(request(1));
      now += 250;
      throw new Error("the engine broke");
    },
    { message: "the engine broke" },
  );
  assert.deepEqual(
    await pool.query("select outcome, credits_micro, latency_ms, finish_reason, model from generations"),
    [{ outcome: "internal", credits_micro: 0n, latency_ms: 250, finish_reason: null, model: null }],
  );
  assert.equal(admission.running("ws_1"), 0);
});

test("what is not charged costs nothing and is recorded with its outcome", async (t) => {
  const { pool } = await testDatabase(t);
  const admission = createAdmission(pool, RATES);
  for (const [i, outcome] of (["cut_short", "caller_gone", "upstream_failed"] as const).entries()) {
    const lease = await admission.open(request(i));
    assert.deepEqual(await lease.settle({ ...OK, outcome, charged: false }), { credits: 0 });
  }
  const rows = await pool.query("select outcome, output_tokens, credits_micro from generations order by id");
  assert.deepEqual(
    rows,
    ["cut_short", "caller_gone", "upstream_failed"].map((outcome) => ({
      outcome,
      output_tokens: 20n,
      credits_micro: 0n,
    })),
  );
});

test("settlements that arrive together share statements, and each is recorded", async (t) => {
  const { pool } = await testDatabase(t);
  let statements = 0;
  const counting: Pool = {
    ...pool,
    query: (text, values) => {
      statements++;
      return pool.query(text, values);
    },
  };
  const admission = createAdmission(counting, RATES);
  const leases = await Promise.all(Array.from({ length: 2_500 }, (_, i) => admission.open(request(i))));
  assert.equal(admission.running("ws_1"), 2_500);
  const settled = await Promise.all(leases.map((lease, i) => lease.settle({ ...OK, outputTokens: i })));
  assert.equal(statements, 4);
  const rows = await pool.query<{ i: number; micro: bigint }>(
    "select substr(id, 5)::integer as i, credits_micro as micro from generations order by 1",
  );
  assert.deepEqual(
    rows.map(({ i, micro }) => [i, Number(micro) / 1e6]),
    settled.map(({ credits }, i) => [i, credits]),
  );
  assert.equal(admission.running("ws_1"), 0);
});

test("a connection that is lost while settling neither loses nor doubles a record", async (t) => {
  const { pool, url } = await testDatabase(t);
  const own = openPool(url, { max: 2 });
  t.after(() => own.end());
  let lose = true;
  const losing: Pool = {
    ...own,
    query: async (text, values) => {
      const rows = await own.query(text, values);
      if (lose) {
        lose = false; // the statement arrived, its answer did not
        throw new Error("Connection terminated unexpectedly");
      }
      return rows as never;
    },
  };
  const lease = await createAdmission(losing, RATES).open(request(1));
  assert.deepEqual(await lease.settle(OK), { credits: 0.00864 });
  assert.equal((await pool.query("select from generations")).length, 1);

  const admission = createAdmission(own, RATES);
  let settled = 0;
  let refused = 0;
  for (let n = 2; n < 42; n++) {
    if (n % 10 === 0)
      await pool.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
      );
    const next = await admission.open(request(n));
    await next.settle(OK).then(
      () => settled++,
      (error: { kind: string }) => {
        assert.equal(error.kind, "overloaded");
        refused++;
      },
    );
  }
  const [row] = await pool.query<{ n: bigint }>("select count(*) as n from generations");
  assert.ok(Number(row?.n) >= settled + 1 && Number(row?.n) <= settled + refused + 1);
  assert.ok(settled >= 36, `${settled} of 40`);
  assert.equal(admission.running("ws_1"), 0);
});

test("with the database away settling says overloaded, and leaving a lease stays quiet", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const admission = createAdmission(pool, RATES);
  const lease = await admission.open(request(1));
  await assert.rejects(lease.settle(OK), { kind: "overloaded" });
  await assert.rejects(lease.settle(OK), { kind: "overloaded" });
  await lease[Symbol.asyncDispose]();
  await (await admission.open(request(2)))[Symbol.asyncDispose]();
  assert.equal(admission.running("ws_1"), 0);
  await pool.end();
});

test("prices are exact and rounded half up once", () => {
  assert.equal(costOf({ input: 0.145, cached: 0, output: 0 }, { input: 100, cached: 0, output: 0 }), 15n);
  assert.equal(costOf({ input: 0.1, cached: 0.1, output: 0.1 }, { input: 2, cached: 1, output: 2 }), 0n);
  assert.equal(costOf({ input: 0.1, cached: 0.1, output: 0.1 }, { input: 3, cached: 1, output: 2 }), 1n);
  const tokens = fc.nat(20_000_000);
  const rate = fc.nat(10_000_000_000).map((millionths) => millionths / 1e6);
  fc.assert(
    fc.property(tokens, tokens, tokens, rate, rate, rate, (uncached, cached, output, input, half, out) => {
      const exact =
        BigInt(uncached) * BigInt(Math.round(input * 1e6)) +
        BigInt(cached) * BigInt(Math.round(half * 1e6)) +
        BigInt(output) * BigInt(Math.round(out * 1e6));
      const cost = costOf({ input, cached: half, output: out }, { input: uncached + cached, cached, output });
      assert.ok(cost * 1_000_000n - exact <= 500_000n && exact - cost * 1_000_000n < 500_000n);
    }),
  );
});
