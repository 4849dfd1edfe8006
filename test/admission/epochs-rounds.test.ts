import assert from "node:assert/strict";
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import pg from "pg";
import { pino } from "pino";
import { test } from "vitest";
import { keepEpoch } from "../../src/admission/epochs.ts";
import type { Pool } from "../../src/store/pool.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { AWAY } from "../helpers/scripted.ts";

/** An error of Postgres. */
function refusal(code: string): Error {
  return Object.assign(new pg.DatabaseError("refused", 0, "error"), { code });
}

interface Grant {
  workspace: string;
  replica: string;
  id: bigint;
}

/** The rounds of the replica `me` over a database that the test plays, at times that it passes. */
function scripted(t: Lifetime) {
  const state = {
    now: 1_000,
    live: 1,
    hears: true,
    quiet: [] as string[],
    grants: [] as Grant[],
    /** Errors of statements, by a word in their text or by a workspace. */
    errors: {} as Record<string, Error>,
    calls: [] as string[],
    logged: [] as object[],
  };
  passTime(t, state);
  const answers: Record<string, (values: readonly unknown[]) => object[]> = {
    "insert into replicas": ([id]) => (id === "me" ? [{ live: state.live }] : []),
    "beat_at from replicas": () => state.quiet.map((id) => ({ id, beat_at: new Date(0) })),
    "update replicas": ([ids]) => (ids as string[]).map((id) => ({ id })),
    "from grants": ([ids]) => state.grants.filter(({ replica }) => (ids as string[]).includes(replica)),
    end_grants([workspace, replica]) {
      state.calls.push(`end ${workspace} ${replica}`);
      if (state.errors[workspace as string]) throw state.errors[workspace as string];
      return [];
    },
    "delete from idempotency"() {
      state.calls.push("remove");
      return [];
    },
    "delete from replicas": () => [],
  };
  const query = async (text: string, values: readonly unknown[] = []) => {
    const [name = "", answer] = Object.entries(answers).find(([one]) => text.includes(one)) ?? [];
    if (state.errors[name]) throw state.errors[name];
    assert.ok(answer, text);
    return answer(values);
  };
  const grants = {
    beat: (sentAt: number, live: number, hears: boolean) => void state.calls.push(`beat ${sentAt} ${live} ${hears}`),
    find: (workspace: string, id: number) => void state.calls.push(`find ${workspace} ${id}`),
  };
  const log = pino(
    { level: "warn", base: null, timestamp: false },
    {
      write(line) {
        const { workspace, grants, msg } = JSON.parse(line);
        state.logged.push([msg, workspace ?? grants].filter((one) => one !== undefined));
      },
    },
  );
  const start = async () => {
    const epoch = await keepEpoch({ query } as unknown as Pool, "me", grants, () => state.hears, log);
    t.onTestFinished(() => epoch.stop());
    return epoch;
  };
  /** @returns what was called meanwhile */
  const pass = async (ms: number): Promise<string[]> => {
    state.now += ms;
    mock.timers.tick(ms);
    for (let i = 0; i < 20; i++) await turn();
    return state.calls.splice(0);
  };
  return { state, start, pass };
}

/** Lets a test pass the time of `performance.now()` and of all timers. */
function passTime(t: Lifetime, state: { readonly now: number }): void {
  const { mock: now } = mock.method(performance, "now", () => state.now);
  mock.timers.enable({ apis: ["setTimeout"] });
  syncBuiltinESMExports();
  t.onTestFinished(() => {
    now.restore();
    mock.timers.reset();
    syncBuiltinESMExports();
  });
}

test("sends a heartbeat at once and every two seconds, and tells how many replicas run and who is heard", async (t) => {
  const { state, start, pass } = scripted(t);
  const epoch = await start();
  assert.equal(state.calls[0], "beat 1000 1 true");
  await pass(0);
  Object.assign(state, { live: 3, hears: false });
  assert.deepEqual(await pass(1_999), []);
  assert.deepEqual(await pass(1), ["beat 3000 3 false", "remove"]);
  await epoch.stop();
  assert.deepEqual(await pass(10_000), []);
});

test("does not start without a first heartbeat", async (t) => {
  const { state, start } = scripted(t);
  state.errors = { "insert into replicas": AWAY };
  await assert.rejects(start(), AWAY);
});

test("finds its own grants in each round, and removes expired responses", async (t) => {
  const { state, start, pass } = scripted(t);
  state.grants = [
    { workspace: "ws_1", replica: "me", id: 7n },
    { workspace: "ws_2", replica: "other", id: 8n },
  ];
  await start();
  state.calls = [];
  for (let i = 0; i < 2; i++)
    assert.deepEqual(
      (await pass(i * 2_000)).filter((call) => !call.startsWith("beat")),
      ["find ws_1 7", "remove"],
    );
  assert.deepEqual(state.logged, []);
});

test("ends the grants of dead replicas, also when one is locked or refused", async (t) => {
  const { state, start, pass } = scripted(t);
  state.quiet = ["dead", "gone"];
  state.grants = [
    ...["ws_1", "ws_2", "ws_3", "ws_4"].map((workspace) => ({ workspace, replica: "dead", id: 1n })),
    { workspace: "ws_5", replica: "gone", id: 1n },
  ];
  state.errors = { ws_1: refusal("55P03"), ws_3: refusal("23514") };
  await start();
  assert.ok(!(await pass(0)).some((call) => call.startsWith("end")));
  const ended = ["ws_1 dead", "ws_2 dead", "ws_3 dead", "ws_4 dead", "ws_5 gone"].map((one) => `end ${one}`);
  assert.deepEqual((await pass(10_000)).slice(1), [...ended, "remove"]);
  // A lock is no defect.
  assert.deepEqual(state.logged, [
    ["could not end a grant", "ws_3"],
    ["ended grants of replicas that do not run any more", 3],
  ]);
});

test("says nothing of ended grants when none could be ended", async (t) => {
  const { state, start, pass } = scripted(t);
  state.quiet = ["dead"];
  state.grants = [{ workspace: "ws_1", replica: "dead", id: 1n }];
  state.errors = { ws_1: refusal("55P03") };
  await start();
  await pass(0);
  assert.ok((await pass(10_000)).includes("end ws_1 dead"));
  assert.deepEqual(state.logged, []);
});

for (const [what, errors] of [
  ["reads its grants", { "from grants": AWAY }],
  ["sends its heartbeat", { "insert into replicas": AWAY }],
] as const) {
  test(`observes other replicas anew after the database was away when it ${what}, and logs nothing`, async (t) => {
    const { state, start, pass } = scripted(t);
    state.quiet = ["dead"];
    state.grants = [{ workspace: "ws_1", replica: "dead", id: 1n }];
    await start();
    state.errors = errors;
    await pass(0);
    await pass(2_000);
    state.errors = {};
    for (const ms of [8_000, 9_999]) assert.ok(!(await pass(ms)).includes("end ws_1 dead"), `${ms}`);
    assert.ok((await pass(2_000)).includes("end ws_1 dead"));
    assert.equal(state.logged.length, 1);
  });
}

test("ends no further grant when the database goes away, and counts the dead again", async (t) => {
  const { state, start, pass } = scripted(t);
  state.quiet = ["dead"];
  state.grants = ["ws_1", "ws_2"].map((workspace) => ({ workspace, replica: "dead", id: 1n }));
  state.errors = { ws_1: AWAY };
  await start();
  await pass(0);
  assert.deepEqual((await pass(10_000)).slice(1), ["end ws_1 dead"]);
  state.errors = {};
  assert.deepEqual((await pass(2_000)).slice(1), ["remove"]);
  assert.deepEqual((await pass(10_000)).slice(1), ["end ws_1 dead", "end ws_2 dead", "remove"]);
});

test("logs a failure that is no outage, and goes on", async (t) => {
  const { state, start, pass } = scripted(t);
  state.errors = { "from grants": refusal("42P01") };
  await start();
  await pass(0);
  assert.deepEqual(state.logged, [["could not keep the grants"]]);
  state.errors = {};
  assert.ok((await pass(2_000)).includes("remove"));
});
