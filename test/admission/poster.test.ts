import assert from "node:assert/strict";
import { mock } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import pg from "pg";
import { pino } from "pino";
import { test } from "vitest";
import { Poster, postLog } from "../../src/admission/poster.ts";
import type { Pool } from "../../src/store/pool.ts";
import { logSettlement, makeAccount } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

async function settledIn(pool: Pool, charges: Record<string, bigint>): Promise<void> {
  for (const [id, charge] of Object.entries(charges)) {
    await makeAccount(pool, id, { granted: 10_000 });
    await logSettlement(pool, id, "r1", charge);
  }
}

const waiting = (pool: Pool) => pool.query("select workspace_id as id from settlement_log order by 1");

test("posts the other workspaces while one is locked", async (t) => {
  const { pool } = await testDatabase(t);
  await settledIn(pool, { ws_1: 1n, ws_2: 1n, ws_3: 1n });
  await pool.tx(async (query) => {
    await query("select from accounts where workspace_id = 'ws_2' for update");
    await postLog(pool, undefined);
    assert.deepEqual(await waiting(pool), [{ id: "ws_2" }]);
    await postLog(pool, "ws_2");
  });
  await postLog(pool, "ws_2");
  assert.deepEqual(await waiting(pool), []);
});

test("posts the other workspaces for an operator although the database refuses what waits in one", async (t) => {
  const { pool } = await testDatabase(t);
  await settledIn(pool, { ws_1: 1n, ws_2: 9n * 10n ** 18n, ws_3: 1n });
  await postLog(pool, undefined);
  assert.deepEqual(await waiting(pool), [{ id: "ws_2" }]);
  await assert.rejects(postLog(pool, "ws_2"), { code: "23514" });
});

/** An error of Postgres. */
function refusal(code: string): Error {
  return Object.assign(new pg.DatabaseError("refused", 0, "error"), { code, severity: "ERROR" });
}

/** A poster whose time the test passes, and whose statements fail for some workspaces. */
function background(t: Lifetime) {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.onTestFinished(() => mock.timers.reset());
  const state = { statements: [] as string[], errors: {} as Record<string, Error>, reported: [] as string[] };
  const query = async (_: string, [workspaces]: readonly unknown[]) => {
    const names = workspaces as string[];
    state.statements.push(names.length > 9 ? `${names.length} workspaces` : names.join(" "));
    for (const name of names) if (state.errors[name]) throw state.errors[name];
    return [];
  };
  const log = pino({ level: "error" }, { write: (line) => void state.reported.push(JSON.parse(line).workspace) });
  const poster = new Poster({ query } as unknown as Pool, log, undefined);
  /** @returns the statements meanwhile */
  const pass = async (ms: number): Promise<string[]> => {
    mock.timers.tick(ms);
    for (let i = 0; i < 20; i++) await turn();
    return state.statements.splice(0);
  };
  return { state, poster, pass };
}

test("posts in the background what was appended in 100 ms, and 512 settlements at once", async (t) => {
  const { poster, pass } = background(t);
  poster.appended("ws_1", 1);
  poster.appended("ws_2", 510);
  poster.appended("ws_1", 0);
  assert.deepEqual([await pass(99), await pass(1), await pass(10_000)], [[], ["ws_1 ws_2"], []]);
  poster.appended("ws_1", 511);
  assert.deepEqual(await pass(0), []);
  poster.appended("ws_3", 1);
  assert.deepEqual(await pass(0), ["ws_1 ws_3"]);
  assert.deepEqual(await pass(10_000), []);
  // What comes during a statement waits for the next one: a while, or not at all when it is much.
  poster.appended("ws_1", 512);
  poster.appended("ws_4", 511);
  assert.deepEqual([await pass(0), await pass(99), await pass(1)], [["ws_1"], [], ["ws_4"]]);
  poster.appended("ws_1", 512);
  poster.appended("ws_4", 512);
  assert.deepEqual([await pass(0), await pass(0)], [["ws_1"], ["ws_4"]]);
});

test("posts each workspace alone when the database refuses one, and that one again after two seconds", async (t) => {
  const { state, poster, pass } = background(t);
  state.errors = { ws_2: refusal("23514"), ws_3: refusal("55P03") };
  for (const name of ["ws_1", "ws_2", "ws_3"]) poster.appended(name, 1);
  assert.deepEqual(await pass(100), ["ws_1 ws_2 ws_3", "ws_1", "ws_2", "ws_3"]);
  // One that is locked is no defect.
  assert.deepEqual(state.reported, ["ws_2"]);
  poster.appended("ws_4", 1);
  assert.deepEqual(await pass(1_999), []);
  state.errors = {};
  assert.deepEqual([await pass(1), await pass(10_000)], [["ws_2 ws_3 ws_4"], []]);
});

test("keeps all workspaces while the database is unavailable, and reports none of them", async (t) => {
  const { state, poster, pass } = background(t);
  state.errors = { ws_1: refusal("57P01") };
  for (const name of ["ws_1", "ws_2"]) poster.appended(name, 1);
  assert.deepEqual([await pass(100), state.reported], [["ws_1 ws_2"], []]);
  assert.deepEqual(await pass(2_000), ["ws_1 ws_2"]);
  state.errors = {};
  await poster.close();
  assert.deepEqual([await pass(0), await pass(10_000)], [["ws_1 ws_2"], []]);
});

test("sends nothing after it is closed, also when the last statement has failed", async (t) => {
  const { state, poster, pass } = background(t);
  state.errors = { ws_1: refusal("57P01") };
  poster.appended("ws_1", 1);
  assert.deepEqual(await pass(100), ["ws_1"]);
  await poster.close();
  assert.deepEqual([await pass(0), await pass(10_000)], [["ws_1"], []]);
});

test("waits 100 ms again after it has posted much before that time", async (t) => {
  const { poster, pass } = background(t);
  poster.appended("ws_1", 1);
  await pass(50);
  poster.appended("ws_1", 511);
  assert.deepEqual(await pass(0), ["ws_1"]);
  poster.appended("ws_2", 1);
  assert.deepEqual([await pass(50), await pass(49), await pass(1)], [[], [], ["ws_2"]]);
});

test("looks for what waits of the workspace that it is asked for, or of all", async () => {
  const asked: unknown[] = [];
  const query = async (text: string, [first]: readonly unknown[]) => {
    if (text.includes("from settlement_log")) asked.push(first);
    return [];
  };
  const pool = { query } as unknown as Pool;
  await postLog(pool, "ws_1");
  await postLog(pool, undefined);
  assert.equal(asked[0], "ws_1");
  assert.equal(typeof asked[1], "number");
});

test("posts at most 64 workspaces with one statement, and all that wait when it is closed", async (t) => {
  const { poster, pass } = background(t);
  for (let i = 0; i < 130; i++) poster.appended(`ws_${i}`, 1);
  await poster.close();
  assert.deepEqual(await pass(0), ["64 workspaces", "64 workspaces", "ws_128 ws_129"]);
  await poster.close();
  assert.deepEqual(await pass(10_000), []);
});
