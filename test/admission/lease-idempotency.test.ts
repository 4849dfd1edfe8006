import assert from "node:assert/strict";
import { test } from "vitest";
import type { Settlement } from "../../src/admission/lease.ts";
import type { Pool } from "../../src/store/pool.ts";
import { accountOf, answered, ask, checkBooks, FAILED, makeAccount, makeReplica } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { postOf, recordIn } from "../helpers/exchange.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

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
    const opened = await replica.admission.open(keyed());
    assert.ok("replay" in opened);
    assert.equal(Buffer.from(opened.replay).toString(), "one for 0.041");
  }
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);
  clock.now += 1;
  await (await replica.take(keyed({ body: "0c".repeat(32) }))).settle(withAnswer("two"));
  assert.equal((await accountOf(pool, "ws_1")).granted, 8n * COST);
  // A replayed answer needs neither quota nor credit.
  await pool.query("select book_credit('ws_1', 'grant', 'back', $1)", [-8n * COST]);
  assert.ok("replay" in (await replica.admission.open(keyed({ body: "0c".repeat(32) }))));
  await assert.rejects(replica.take(ask("ws_1")), { limit: "requests_per_month" });
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
  await pool.query("select end_grants('ws_1', 'r1')");
  await (await replica.take(keyed({ body: "0c".repeat(32) }))).settle(withAnswer("one"));
  assert.ok("replay" in (await replica.admission.open(keyed({ body: "0c".repeat(32) }))));
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);
  await checkBooks(pool);
});

test("frees the key of a request that was refused because the database's answer was lost", async (t) => {
  const { pool, clock } = await setUp(t);
  const link = { lose: false };
  const flaky: Pool = {
    ...pool,
    query: async (text, values) => {
      const rows = await pool.query(text, values);
      if (link.lose) throw new Error("Connection terminated unexpectedly");
      return rows as never;
    },
  };
  const replica = await makeReplica(t, flaky, { clock: () => clock.now });
  const other = await makeReplica(t, pool, { id: "r2", clock: () => clock.now });
  // Its grant stays open.
  const running = await replica.take(ask("ws_1"));
  link.lose = true;
  await assert.rejects(replica.take(keyed()), { kind: "overloaded" });
  await assert.rejects(other.take(keyed()), { kind: "idempotency_key_in_use" });
  link.lose = false;
  const retry = () => other.take(keyed()).catch(({ kind }) => assert.equal(kind, "idempotency_key_in_use"));
  await until(async () => (await retry())?.settle(withAnswer("one")));
  assert.ok("replay" in (await replica.admission.open(keyed())));
  await running.settle(answered());
  assert.equal((await accountOf(pool, "ws_1")).granted, 8n * COST);
  await checkBooks(pool);
});

test("frees the key of a request whose grant a crash of the database has set back", async (t) => {
  const { pool, replica } = await setUp(t);
  const first = await replica.take(keyed());
  const [before] = await pool.query<{ row: object }>("select to_jsonb(g) as row from grants g");
  await replica.take(ask("ws_1"));
  // As after a restart: the last statement was not on the disk.
  await pool.query("delete from grants");
  await pool.query("insert into grants select * from jsonb_populate_record(null::grants, $1)", [
    JSON.stringify(before?.row),
  ]);
  await assert.rejects(first.settle(withAnswer("one")), { kind: "overloaded" });
  await (await replica.take(keyed())).settle(withAnswer("two"));
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);
  await checkBooks(pool);
});

test("keeps the answer for its key when the statement that admitted it is executed again", async (t) => {
  const { pool, clock } = await setUp(t);
  const sent: [string, readonly unknown[] | undefined][] = [];
  const recorded: Pool = {
    ...pool,
    query: async (text, values) => {
      sent.push([text, values]);
      return (await pool.query(text, values)) as never;
    },
  };
  const replica = await makeReplica(t, recorded, { clock: () => clock.now });
  const lease = await replica.take(keyed());
  const [first] = sent;
  await lease.settle(withAnswer("one"));
  await pool.query("delete from grants");
  if (first) await pool.query(...first);
  await pool.query("delete from grants");
  assert.ok("replay" in (await replica.admission.open(keyed())));
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);
});

test("charges only the second run when the grant of the first one has ended", async (t) => {
  for (const order of ["first ends last", "first ends first"]) {
    const { pool, clock, replica } = await setUp(t);
    const other = await makeReplica(t, pool, { id: "r2", clock: () => clock.now });
    const lost = await replica.take(keyed());
    await pool.query("select end_grants('ws_1', 'r1')");
    const second = await other.take(keyed());
    if (order === "first ends last") await second.settle(withAnswer("second"));
    await assert.rejects(lost.settle(withAnswer("first")), { kind: "overloaded" }, order);
    assert.deepEqual(await second.settle(withAnswer("second")), { credits: 0.041 });
    assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST, order);
    const replayed = await replica.admission.open(keyed());
    assert.ok("replay" in replayed);
    assert.equal(Buffer.from(replayed.replay).toString(), "second for 0.041");
    await checkBooks(pool);
  }
});

test("keeps the answer of the journal for its key, also if a crash of the database has lost the key", async (t) => {
  const { pool, clock, replica } = await setUp(t);
  const response = Buffer.from("delivered").toString("base64");
  const row = { charge: Number(COST), key: KEY, body: BODY, response };
  const late = { ...postOf("req_late", row, new Date(clock.now)), admittedBy: "r9" };
  await recordIn(pool, "ws_1", [late], new Date(clock.now));
  const opened = await replica.admission.open(keyed());
  assert.ok("replay" in opened);
  assert.equal(Buffer.from(opened.replay).toString(), "delivered");
  assert.equal((await accountOf(pool, "ws_1")).granted, 9n * COST);
  await checkBooks(pool);
});

test("refuses a repeated request that arrives in the same statement as the first request of its replica", async (t) => {
  const { pool, clock } = await setUp(t);
  let first = true;
  const { promise: bothAsk, resolve } = Promise.withResolvers<void>();
  const slow: Pool = {
    ...pool,
    query: async (text, values) => {
      if (first) await bothAsk;
      first = false;
      return (await pool.query(text, values)) as never;
    },
  };
  // The first statement is about another workspace. Both requests wait for it.
  await makeAccount(pool, "ws_2", { granted: COST });
  const replica = await makeReplica(t, slow, { clock: () => clock.now });
  const requests = [replica.take(ask("ws_2")), replica.take(keyed()), replica.take(keyed())];
  resolve();
  const [, one, other] = await Promise.allSettled(requests);
  assert.deepEqual([one?.status, other?.status], ["fulfilled", "rejected"]);
});
