import assert from "node:assert/strict";
import { mock } from "node:test";
import { test } from "vitest";
import { createStanding } from "../../src/admission/standing.ts";
import type { Failure } from "../../src/contract/failure.ts";
import type { Pool } from "../../src/store/pool.ts";
import { makeAccount, RATES } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startService } from "../helpers/service.ts";

const FREE = { input: 0, cached: 0, output: 0 };

/** What refuses the smallest request of a workspace. */
async function refusal(check: Promise<void> | undefined): Promise<string> {
  const failure: Failure | undefined = await (check ?? Promise.resolve()).then(
    () => undefined,
    (error) => error,
  );
  return failure ? `${failure.kind} ${failure.limit ?? ""}`.trim() : "none";
}

test("refuses a workspace whose limits or credit allow no request at all", async (t) => {
  const { pool } = await testDatabase(t);
  const rich = { granted: 1_000_000 };
  for (const [id, account, expected] of [
    ["rich", rich, "none"],
    ["last", { granted: 1 }, "none"],
    ["poor", { granted: 0 }, "insufficient_credit"],
    ["barred", { ...rich, limits: { requests_per_minute: 0 } }, "rate_limited requests_per_minute"],
    ["busy", { ...rich, limits: { concurrent_requests: 0 } }, "rate_limited concurrent_requests"],
    ["quiet", { ...rich, limits: { input_tokens_per_day: 0 } }, "rate_limited input_tokens_per_day"],
  ] as const) {
    await makeAccount(pool, id, account);
    assert.equal(await refusal(createStanding(pool).check(id, RATES)), expected, id);
  }
  assert.equal(await refusal(createStanding(pool).check("unknown", RATES)), "none");
});

test("answers a workspace without credit where requests are free", async (t) => {
  const { pool, url: databaseUrl } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: { CHORUS_RATES: JSON.stringify(FREE) } });
  await pool.query("update accounts set granted_micro = 0");
  const response = await service.post("/v1/generate", { prompt: "What is 6 * 7?" });
  assert.equal(response.status, 200, await response.text());
});

test("refuses no workspace for its credit where the smallest request is free", async (t) => {
  const { pool } = await testDatabase(t);
  for (const [id, account, expected] of [
    ["poor", {}, "none"],
    ["spent", { purchased: 1, spendLimits: { day: 0 } }, "none"],
    ["barred", { limits: { requests_per_minute: 0 } }, "rate_limited requests_per_minute"],
  ] as const) {
    await makeAccount(pool, id, account);
    assert.equal(await refusal(createStanding(pool).check(id, FREE)), expected, id);
  }
});

test("asks the database only about workspaces that were not admitted last", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 0 });
  let statements = 0;
  const counting: Pool = {
    ...pool,
    query: (text, values) => {
      statements++;
      return pool.query(text, values);
    },
  };
  const standing = createStanding(counting);
  const many = await Promise.all(Array.from({ length: 500 }, () => refusal(standing.check("ws_1", RATES))));
  assert.deepEqual([...new Set(many)], ["insufficient_credit"]);
  assert.ok(statements <= 2, `${statements} statements for 500 requests at a time`);

  // Credit counts at once.
  await pool.query("update accounts set granted_micro = 10");
  assert.equal(await refusal(standing.check("ws_1", RATES)), "none");
  assert.equal(standing.check("ws_1", RATES), undefined);
  standing.note("ws_1", false);
  const lookUp = standing.check("ws_1", RATES);
  assert.notEqual(lookUp, undefined);
  await lookUp;
  standing.note("ws_1", true);
  assert.equal(standing.check("ws_1", RATES), undefined);
});

/** Standings over a database that the test plays, and a time that it passes. */
function scripted(t: Lifetime) {
  const state = { now: 1_000, refused: new Set<string>(), left: { requests_per_day: [9, 4] } as object | null };
  const { mock: now } = mock.method(performance, "now", () => state.now);
  t.onTestFinished(() => now.restore());
  const query = async (_: string, [ids]: readonly unknown[]) =>
    (ids as string[]).map((id) => ({
      id,
      refusal: state.refused.has(id) ? { refusal: "rate_limited", limit: "requests_per_day" } : null,
      left: state.left,
      ms_left: 20_000,
      // The last minute of a day.
      minute: Date.parse("2026-05-06T23:59:00Z"),
    }));
  return { state, standing: createStanding({ query } as unknown as Pool) };
}

test("asks again about a workspace a minute after a request of it was admitted", async (t) => {
  const { state, standing } = scripted(t);
  const isKnown = () => standing.check("ws_1", RATES) === undefined;
  standing.note("ws_1", true);
  state.now += 59_999;
  assert.equal(isKnown(), true);
  state.now += 1;
  assert.equal(isKnown(), false);
});

test("asks about a workspace again and again while it is refused", async (t) => {
  const { state, standing } = scripted(t);
  state.refused.add("ws_1");
  for (let i = 0; i < 2; i++)
    assert.equal(await refusal(standing.check("ws_1", RATES)), "rate_limited requests_per_day");
  state.refused.clear();
  assert.equal(await refusal(standing.check("ws_1", RATES)), "none");
  assert.equal(standing.check("ws_1", RATES), undefined);
});

test("knows the limits of a workspace that it has refused until their minute ends, or it is admitted", async (t) => {
  const { state, standing } = scripted(t);
  const limits = () => standing.limits("ws_1")?.map((one) => [one.name, one.remaining, one.limit, one.resetMs]);
  assert.equal(limits(), undefined);
  state.refused.add("ws_1");
  await refusal(standing.check("ws_1", RATES));
  assert.deepEqual(limits(), [["requests_per_day", 4, 9, 20_000]]);
  state.now += 19_999;
  assert.deepEqual(limits(), [["requests_per_day", 4, 9, 1]]);
  state.now += 1;
  assert.equal(limits(), undefined);
  await refusal(standing.check("ws_1", RATES));
  assert.equal(limits()?.length, 1);
  state.refused.clear();
  await refusal(standing.check("ws_1", RATES));
  assert.equal(limits(), undefined);
  // Credit has no window.
  state.refused.add("ws_1");
  standing.note("ws_1", false);
  state.left = null;
  await refusal(standing.check("ws_1", RATES));
  assert.equal(limits(), undefined);
});

test("remembers the 10,000 workspaces that were admitted or refused last", async (t) => {
  const { state, standing } = scripted(t);
  const names = Array.from({ length: 10_001 }, (_, i) => `ws_${i}`);
  const [first = "", second = "", ...others] = names;
  for (const name of [first, second, ...others.slice(1)]) standing.note(name, true);
  assert.equal(standing.check(first, RATES), undefined);
  standing.note(first, true);
  standing.note(others[0] ?? "", true);
  // Those that are forgotten take no place.
  for (const name of others) standing.note(`${name} refused`, false);
  assert.equal(standing.check(first, RATES), undefined);
  assert.notEqual(standing.check(second, RATES), undefined);
  await standing.check(second, RATES);

  state.refused = new Set(names);
  const isKnown = (name: string) => standing.limits(name) !== undefined;
  const refuse = async (some: readonly string[]) => {
    for (const name of some) standing.note(name, false);
    await Promise.all(some.map((name) => refusal(standing.check(name, RATES))));
  };
  await refuse([first, second]);
  await refuse(others.slice(1));
  assert.deepEqual([isKnown(first), isKnown(second)], [true, true]);
  await refuse(others.slice(0, 1));
  assert.deepEqual([isKnown(first), isKnown(second)], [false, true]);
});
