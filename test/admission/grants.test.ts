import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { test } from "vitest";
import { execute } from "../../src/admission/escrow/execute.ts";
import { Grants } from "../../src/admission/grants.ts";
import { openJournal } from "../../src/admission/journal.ts";
import { PostJournal, type SettlementRow } from "../../src/admission/post-journal.ts";
import { Failure } from "../../src/contract/failure.ts";
import type { Pool } from "../../src/store/pool.ts";
import { checkBooks, makeAccount, makeFolder, QUIET } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { checkEdge, EDGES } from "../helpers/edges.ts";
import { itemOf, postOf } from "../helpers/exchange.ts";
import { admit, makeGrants, settle } from "../helpers/grants.ts";
import { until } from "../helpers/until.ts";

/** Rounds at the edge of each limit; set CHORUS_TEST_RUNS for more. */
const ROUNDS = Number(process.env.CHORUS_TEST_RUNS ?? 3);

/** A pool that can be away, and counts its statements except those that post the log, which run by the clock. */
function watched(pool: Pool) {
  const state = { statements: 0, isAway: false };
  const query: Pool["query"] = (text, values) => {
    if (!text.includes("post_settlements")) state.statements += 1;
    if (state.isAway) throw Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" });
    return pool.query(text, values);
  };
  return {
    state,
    pool: { ...pool, query: async (text: string, values?: readonly unknown[]) => query(text, values) } as Pool,
  };
}

async function balance(pool: Pool): Promise<number> {
  const [row] = await pool.query<{ sum: bigint }>("select granted_micro + purchased_micro as sum from accounts");
  return Number(row?.sum);
}

test("admits requests of a busy workspace without a statement, and charges each before it is confirmed", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 1_000_000, limits: { requests_per_day: 10_000 } });
  const { pool, state } = watched(database.pool);
  const grants = await makeGrants(t, { ...database, pool }, "r1");
  for (let i = 0; i < 20; i++) await settle(grants, await admit(grants));
  const before = state.statements;
  for (let i = 0; i < 20; i++) {
    assert.equal(await settle(grants, await admit(grants)), 100);
    assert.equal(await balance(database.pool), 1_000_000 - 2_000 - (i + 1) * 100);
  }
  assert.ok(state.statements - before <= 25, `${state.statements - before} statements for 20 requests`);
});

for (const [name, account] of Object.entries(EDGES)) {
  test(`admits exactly as many requests on two replicas as ${name} allow`, (t) => checkEdge(t, account, ROUNDS));
}

test("reserves nothing in advance while call-backs of other replicas may be lost", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const [deaf, other] = [await makeGrants(t, database, "r1", { isDeaf: true }), await makeGrants(t, database, "r2")];
  for (let i = 0; i < 10; i++) await settle(deaf, await admit(deaf), { charge: 0 });
  await admit(other, { hold: 10_000 });
});

test("returns headroom that another replica needs, and all of it at the end", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const first = await makeGrants(t, database, "r1");
  for (let i = 0; i < 10; i++) await settle(first, await admit(first), { charge: 0 });
  const [row] = await database.pool.query<{ idle: bigint }>("select credit_micro - held_micro as idle from grants");
  assert.ok(row && row.idle > 0n);
  const second = await makeGrants(t, database, "r2");
  await admit(second, { hold: 10_000 });
  await first.close();
  const grants = await database.pool.query("select replica, credit_micro::int as credit from grants");
  assert.deepEqual(grants, [{ replica: "r2", credit: 10_000 }]);
});

test("states in a refusal the limit that is reached without the headroom of other replicas", async (t) => {
  const database = await testDatabase(t);
  const limits = { concurrent_requests: 12 };
  await makeAccount(database.pool, "ws_1", { purchased: 10 ** 6, limits, spendLimits: { day: 5_000 } });
  const first = await makeGrants(t, database, "r1");
  for (let i = 0; i < 20; i++) await settle(first, await admit(first), { charge: 0 });
  const [row] = await database.pool.query<{ idle: bigint }>("select running - running_now as idle from grants");
  const second = await makeGrants(t, database, "r2");
  const idle = Number(row?.idle);
  assert.ok(idle > 0);
  for (let i = 0; i < limits.concurrent_requests - idle; i++) await admit(second, { hold: 1 });
  const isSpendLimit = (error: unknown) => error instanceof Failure && error.kind === "spend_limit_reached";
  await assert.rejects(admit(second, { hold: 5_001 }), isSpendLimit);
});

test("returns the headroom of an idle workspace while another one is busy", async (t) => {
  const database = await testDatabase(t);
  for (const id of ["ws_1", "ws_2"]) await makeAccount(database.pool, id, { granted: 1_000_000 });
  const grants = await makeGrants(t, database, "r1");
  for (let i = 0; i < 10; i++) await settle(grants, await admit(grants, { workspace: "ws_2" }));
  const idle = () => database.pool.query("select from grants where workspace_id = 'ws_2'");
  assert.equal((await idle()).length, 1);
  await until(async () => {
    await settle(grants, await admit(grants));
    return (await idle()).length === 0;
  });
});

test("keeps settlements in the journal while the database is away, and charges them once afterwards", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const { pool, state } = watched(database.pool);
  const grants = await makeGrants(t, { ...database, pool }, "r1");
  const ids = [await admit(grants), await admit(grants), await admit(grants)];
  state.isAway = true;
  assert.deepEqual(await Promise.all(ids.map((id) => settle(grants, id))), [100, 100, 100]);
  await assert.rejects(admit(grants, { hold: 5_000 }), { kind: "overloaded" });
  assert.equal(await balance(database.pool), 10_000);
  state.isAway = false;
  await until(async () => (await balance(database.pool)) === 9_700);
  // Until the answer of the database has arrived, it counts as away.
  const isAdmitted = (admitted: Promise<string>) =>
    admitted.then(
      () => true,
      () => false,
    );
  await until(() => isAdmitted(admit(grants, { hold: 9_700 })));
});

test("charges what a process that has died has left in its journal", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const { pool, state } = watched(database.pool);
  const folder = await makeFolder(t);
  const dead = await makeGrants(t, { ...database, pool }, "r1", { folder });
  const ids = [await admit(dead, { hold: 6_000 }), await admit(dead, { hold: 4_000 })];
  state.isAway = true;
  await settle(dead, ids[0] ?? "", { charge: 6_000 });
  await makeGrants(t, database, "r2", { folder });
  await until(async () => (await balance(database.pool)) === 4_000);
  state.isAway = false;
  await settle(dead, ids[1] ?? "", { charge: 1_000 });
  await until(async () => (await balance(database.pool)) === 3_000);
});

test("refuses the settlement of a request whose grant another replica has ended, and charges nothing", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const grants = await makeGrants(t, database, "r1");
  const id = await admit(grants);
  await database.pool.query("select end_grants('ws_1', 'r1')");
  await assert.rejects(settle(grants, id), { kind: "overloaded" });
  assert.equal(await balance(database.pool), 10_000);
  assert.equal(await settle(grants, await admit(grants)), 100);
});

test("refuses the settlement of a request whose admission a crash of the database has lost", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const grants = await makeGrants(t, database, "r1");
  const first = await admit(grants, { hold: 4_000 });
  const [before] = await database.pool.query<{ row: object }>("select to_jsonb(g) as row from grants g");
  const second = await admit(grants, { hold: 5_000 });
  // As after a restart: the statement of the second one was not on the disk.
  await database.pool.query("delete from grants");
  await database.pool.query("insert into grants select * from jsonb_populate_record(null::grants, $1)", [
    JSON.stringify(before?.row),
  ]);
  for (const id of [second, first]) await assert.rejects(settle(grants, id), { kind: "overloaded" });
  assert.equal(await balance(database.pool), 10_000);
  assert.equal(await settle(grants, await admit(grants, { hold: 10_000 })), 100);
});

test("goes on with other workspaces while a transaction locks one", async (t) => {
  const database = await testDatabase(t);
  for (const id of ["ws_1", "ws_2"]) await makeAccount(database.pool, id, { granted: 10_000 });
  const balanceOf = async (id: string) =>
    (await database.pool.query("select granted_micro as micro from accounts where workspace_id = $1", [id]))[0];
  const grants = await makeGrants(t, database, "r1");
  const running = await admit(grants);
  const locking = Promise.withResolvers<void>();
  const { promise: isLocked, resolve: locked } = Promise.withResolvers<void>();
  const lock = database.pool.tx(async (query) => {
    await query("select from accounts where workspace_id = 'ws_1' for update");
    locked();
    await locking.promise;
  });
  await isLocked;
  // Its settlement is in the journal.
  assert.equal(await settle(grants, running), 100);
  await assert.rejects(admit(grants, { hold: 5_000 }), { kind: "overloaded" });
  assert.equal(await settle(grants, await admit(grants, { workspace: "ws_2" })), 100);
  assert.deepEqual(await balanceOf("ws_2"), { micro: 9_900n });
  assert.deepEqual(await balanceOf("ws_1"), { micro: 10_000n });
  locking.resolve();
  await lock;
  await until(async () => isDeepStrictEqual(await balanceOf("ws_1"), { micro: 9_900n }));
});

test("charges an answer of an ended grant nothing that the next grant of its replica holds", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 2_000 });
  const at = Date.now();
  const asks = [{ requestId: "req_1", hold: 1_500, input: 1 }];
  const [opened] = await execute(pool, "r1", 1, [{ ...itemOf("ws_1"), asks }], at);
  assert.ok(opened?.state === "done");
  const late = { ...postOf("req_late", { charge: 1_000 }, new Date(at)), admittedBy: "r1" };
  const { grant } = opened;
  const next = { ...itemOf("ws_1"), grant, held: { credit: 1_500, running: 1 }, posts: [late] };
  const [posted] = await execute(pool, "r1", 1, [next], at);
  assert.deepEqual(posted?.state === "done" && posted.charges, { req_late: 500 });
  assert.equal(await balance(pool), 1_500);
  await checkBooks(pool);
});

test("refuses only the settlement that the database rejects", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const grants = await makeGrants(t, database, "r1");
  const ids = [await admit(grants), await admit(grants), await admit(grants)];
  const [first, bad, last] = await Promise.allSettled(
    ids.map((id, i) => settle(grants, id, i === 1 ? { output: Number.MAX_VALUE } : {})),
  );
  assert.deepEqual([first?.status, bad?.status, last?.status], ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(await balance(database.pool), 9_800);
});

test("admits no request after eight seconds without a heartbeat", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10_000 });
  const journal = new PostJournal(await openJournal<SettlementRow>(await makeFolder(t), QUIET), "r1", QUIET);
  const grants = new Grants({ pool, journal, replica: "r1", log: QUIET });
  t.onTestFinished(() => grants.close());
  grants.beat(performance.now() - 8_000, 1, true);
  const error = await admit(grants).catch((cause: unknown) => cause);
  assert.ok(error instanceof Failure && error.kind === "overloaded");
});

test("admits without a promise where it has headroom, and refuses with one", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const grants = await makeGrants(t, database, "r1");
  const first = grants.admit("ws_1", { requestId: "q1", hold: 100, input: 1 });
  assert.ok(first instanceof Promise);
  assert.equal(await first, undefined);
  for (let i = 0; i < 10; i++) await settle(grants, await admit(grants), { charge: 0 });
  assert.equal(grants.admit("ws_1", { requestId: "q2", hold: 100, input: 1 }), undefined);
  const refused = grants.admit("ws_1", { requestId: "q3", hold: 1_000_000, input: 1 });
  assert.ok(refused instanceof Promise);
  await assert.rejects(refused, { kind: "insufficient_credit" });
});

test("gives the kept response for an idempotency key, and frees the key of a request without one", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const [first, second] = [await makeGrants(t, database, "r1"), await makeGrants(t, database, "r2")];
  const [key, body] = ["aa".repeat(32), "bb".repeat(32)];
  const ask = (requestId: string, of = body) => ({ requestId, hold: 100, input: 1, key, body: of });
  assert.equal(await first.admit("ws_1", ask("q1")), undefined);
  await assert.rejects(async () => second.admit("ws_1", ask("q2")), { kind: "idempotency_key_in_use" });
  await assert.rejects(async () => second.admit("ws_1", ask("q2", "cc".repeat(32))), {
    kind: "idempotency_key_reused",
  });
  await settle(first, "q1", { charge: 0, row: { key, body } });
  // The request had no response, so the next one runs.
  assert.equal(await second.admit("ws_1", ask("q2")), undefined);
  await database.pool.query("select end_grants('ws_1', 'r2')");
  // Its replica is dead, so the next one runs, also another one.
  assert.equal(await first.admit("ws_1", ask("q3", "cc".repeat(32))), undefined);
  const response = Buffer.from("answer").toString("base64");
  await settle(first, "q3", { row: { key, body: "cc".repeat(32), response } });
  assert.deepEqual(await second.admit("ws_1", ask("q4", "cc".repeat(32))), { response });
  await assert.rejects(async () => first.admit("ws_1", ask("q5")), { kind: "idempotency_key_reused" });
  assert.equal(await balance(database.pool), 9_900);
});

test("refuses requests of a workspace that has been deleted, and charges nothing for those that run", async (t) => {
  const database = await testDatabase(t);
  await makeAccount(database.pool, "ws_1", { granted: 10_000 });
  const grants = await makeGrants(t, database, "r1");
  const running = await admit(grants);
  await database.pool.query("delete from accounts");
  for (const workspace of ["ws_1", "ws_9"])
    await assert.rejects(admit(grants, { workspace, hold: 5_000 }), { kind: "unauthenticated" });
  assert.equal(await settle(grants, running), 0);
});
