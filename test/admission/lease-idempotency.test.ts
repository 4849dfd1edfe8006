import assert from "node:assert/strict";
import { test } from "vitest";
import type { Settlement } from "../../src/admission/lease.ts";
import { accountOf, answered, ask, checkBooks, FAILED, makeAccount, makeReplica } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

const KEY = "0a".repeat(32);
const BODY = "0b".repeat(32);
const DAY = 86_400_000;

/** Hold of `ask` and price of `answered`, in micro-credits. */
const COST = 41_000n;

async function setUp(t: Lifetime, limits = {}) {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10n * COST, limits });
  const clock = { now: Date.parse("2026-05-06T07:08:09.123Z") };
  const replica = await makeReplica(t, pool, { clock: () => clock.now });
  return { pool, clock, replica };
}

function keyed(overrides: { key?: string; body?: string; workspace?: string } = {}) {
  const { workspace = "ws_1", key = KEY, body = BODY } = overrides;
  return ask(workspace, { idempotency: { key, body } });
}

function withAnswer(text: string): Settlement {
  return answered({ response: (credits) => Buffer.from(`${text} for ${credits}`) });
}

test("returns the same answer for the same key and request for 24 hours and charges it once", async (t) => {
  const { pool, clock, replica } = await setUp(t, { requests_per_month: 2 });
  const first = keyed();
  await (await replica.take(first)).settle(withAnswer("one"));
  for (const wait of [0, DAY - 1]) {
    clock.now += wait;
    const again = keyed();
    const opened = await replica.admission.open(again);
    assert.ok("replay" in opened);
    assert.equal(Buffer.from(opened.replay).toString(), "one for 0.041");
    assert.equal(replica.admission.holds(again.requestId), false);
  }
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);
  clock.now += 1;
  await (await replica.take(keyed({ body: "0c".repeat(32) }))).settle(withAnswer("two"));
  assert.equal((await accountOf(pool, "ws_1")).granted, 8n * COST);
  // A replayed answer needs neither quota nor credit.
  await pool.query("select book_credit('ws_1', 'grant', 'back', $1)", [-8n * COST]);
  assert.ok("replay" in (await replica.admission.open(keyed({ body: "0c".repeat(32) }))));
  await assert.rejects(replica.take(ask("ws_1")), { limit: "requests_per_month" });
  // It needs a valid API key.
  await pool.query("update api_keys set revoked_at = now()");
  await assert.rejects(replica.admission.open(keyed({ body: "0c".repeat(32) })), { kind: "unauthenticated" });
  await checkBooks(pool);
});

test("refuses another request under the same key while the first runs and after it ended", async (t) => {
  const { pool, replica } = await setUp(t);
  const lease = await replica.take(keyed());
  const reused = { kind: "idempotency_key_reused" };
  await assert.rejects(replica.take(keyed({ body: "0c".repeat(32) })), reused);
  await lease.settle(withAnswer("one"));
  await assert.rejects(replica.take(keyed({ body: "0c".repeat(32) })), reused);
  await replica.take(keyed({ key: "0d".repeat(32), body: "0c".repeat(32) }));
  // Idempotency keys are unique within a workspace only.
  await makeAccount(pool, "ws_2", { granted: COST });
  await replica.take(keyed({ workspace: "ws_2", body: "0c".repeat(32) }));
});

test("refuses a repeated request while the first runs, also when both arrive together", async (t) => {
  const { pool, clock, replica } = await setUp(t);
  const results = await Promise.allSettled([
    replica.take(ask("ws_1")),
    replica.take(keyed()),
    replica.take(keyed()),
    replica.take(keyed()),
  ]);
  const inUse = { kind: "idempotency_key_in_use", retryAfterMs: 1_000 };
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "fulfilled", "rejected", "rejected"],
  );
  for (const result of results.slice(2)) {
    assert.ok(result.status === "rejected");
    assert.equal(result.reason.kind, inUse.kind);
    assert.equal(result.reason.retryAfterMs, inUse.retryAfterMs);
  }
  const other = await makeReplica(t, pool, { id: "r2", clock: () => clock.now });
  await assert.rejects(other.take(keyed()), inUse);
  assert.equal((await accountOf(pool, "ws_1")).running, 2);
});

test("runs the request again after a failure, a crash or an answer that was not kept", async (t) => {
  const { pool, replica } = await setUp(t);
  await (await replica.take(keyed())).settle(FAILED);
  await (await replica.take(keyed())).settle(answered({ outcome: "cut_short" }));
  const crashed = keyed();
  await replica.take(crashed);
  await assert.rejects(replica.take(keyed()), { kind: "idempotency_key_in_use" });
  await pool.query("select release_leases('ws_1', $1)", [[crashed.requestId]]);
  await (await replica.take(keyed({ body: "0c".repeat(32) }))).settle(withAnswer("one"));
  assert.ok("replay" in (await replica.admission.open(keyed({ body: "0c".repeat(32) }))));
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);
  await checkBooks(pool);
});

test("keeps an answer whose lease was released, and charges only the second run if there is one", async (t) => {
  const { pool, replica } = await setUp(t);
  const late = keyed();
  const lease = await replica.take(late);
  await pool.query("select release_leases('ws_1', $1)", [[late.requestId]]);
  assert.deepEqual(await lease.settle(withAnswer("late")), { credits: 0.041 });
  const opened = await replica.admission.open(keyed());
  assert.ok("replay" in opened);
  assert.equal(Buffer.from(opened.replay).toString(), "late for 0.041");
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);

  for (const order of ["late first", "late last"]) {
    const key = order === "late first" ? "1a".repeat(32) : "1b".repeat(32);
    const { granted } = await accountOf(pool, "ws_1");
    const first = keyed({ key });
    const lost = await replica.take(first);
    await pool.query("select release_leases('ws_1', $1)", [[first.requestId]]);
    const second = await replica.take(keyed({ key }));
    if (order === "late last") await second.settle(withAnswer("second"));
    assert.deepEqual(await lost.settle(withAnswer("first")), { credits: 0 }, order);
    await second.settle(withAnswer("second"));
    assert.equal((await accountOf(pool, "ws_1")).granted, granted - COST, order);
    const replayed = await replica.admission.open(keyed({ key }));
    assert.ok("replay" in replayed);
    assert.equal(Buffer.from(replayed.replay).toString(), "second for 0.041");
  }
  await checkBooks(pool);
});
