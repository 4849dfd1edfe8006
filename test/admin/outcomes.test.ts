import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import pg from "pg";
import { test } from "vitest";
import { type RecordOutcomeRequest, RecordOutcomeRequestSchema } from "../../gen/chorus/v1/generation_pb.js";
import { newGenerationId } from "../../src/contract/generation-id.ts";
import type { Kind } from "../../src/engine/difficulty/difficulty.ts";
import { draftsRecord } from "../../src/outcomes/drafts.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import { postOf, recordIn } from "../helpers/exchange.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 20, 12);

type Outcome = Partial<Pick<RecordOutcomeRequest, "score" | "correct" | "expected">>;

/** A back office whose clock the test moves, and two workspaces. */
async function open(t: Lifetime) {
  const { pool, url } = await testDatabase(t);
  for (const id of ["ws_1", "ws_2"]) {
    await pool.query("insert into workspaces (id, name) values ($1, $1)", [id]);
    await pool.query("insert into accounts (workspace_id, granted_micro) values ($1, 1000000)", [id]);
  }
  const clock = { now: NOW };
  const office = (on: Pool) => adminOf(on, { clock: () => clock.now });
  const { recordOutcome } = office(pool);
  const caller = (workspaceId: string) => ({ workspaceId, workspace: workspaceId, keyId: "key_1", scopes: [] });
  const record = (id: string, outcome: Outcome, by = recordOutcome, workspace = "ws_1") =>
    by(create(RecordOutcomeRequestSchema, { id, ...outcome }), caller(workspace));
  return { pool, url, clock, office, record };
}

/** Settles an answer of the model `m`, or of the last model of a list in which each has a draft. */
async function answered(
  pool: Pool,
  text: string,
  made: { kind?: Kind; drafts?: [string, string][]; row?: object } = {},
) {
  const { kind = "closed", drafts, row = {} } = made;
  const id = newGenerationId(NOW);
  const place = drafts?.findIndex(([, canonical]) => canonical === text) ?? -1;
  const drafted = drafts && {
    drafts: drafts.map(([model, canonical]) => ({ model, canonical })),
    chosen: place < 0 ? undefined : place,
  };
  const answer = { generation: id, kind, shape: "text", text, model: "m", drafted } as const;
  const record = draftsRecord({ ...answer, fingerprintOf: (name) => `f-${name}` });
  const by = { model: "m", fingerprint: "f-m", ability: "knowledge", ...(record ? { drafts: record } : {}) };
  const post = postOf(`req_${id}`, { charge: 0, id, ...by, ...row }, new Date(NOW));
  await recordIn(pool, "ws_1", [post], new Date(NOW));
  return id;
}

/** The sums as `model: n score wins losses`. */
async function sums(pool: Pool): Promise<string[]> {
  const rows = await pool.query<{ line: string }>(
    `select model || ': ' || concat_ws(' ', n, trim_scale(score), wins, losses) as line from model_outcomes
     where (n, score, wins, losses) <> (0, 0, 0, 0) order by 1`,
  );
  return rows.map(({ line }) => line);
}

/** The sums of pairs as `one/other: wins losses`. */
async function duels(pool: Pool): Promise<string[]> {
  const rows = await pool.query<{ line: string }>(
    `select one || '/' || other || ': ' || wins || ' ' || losses as line from model_duels
     where (wins, losses) <> (0, 0) order by 1`,
  );
  return rows.map(({ line }) => line);
}

test("records a score, keeps it when it comes again, and replaces it by another one", async (t) => {
  const { pool, clock, office, record } = await open(t);
  const id = await answered(pool, "Once upon a time", { kind: "prose" });
  const first = await record(id, { score: 0.7 });
  assert.deepEqual([first.generationId, first.score], [id, 0.7]);
  assert.equal(timestampDate(first.recordedAt ?? assert.fail()).getTime(), NOW);
  clock.now += 1_000;
  assert.deepEqual(await record(id, { score: 0.7 }), first);
  const { generations } = await office(pool).activity.listGenerations({ workspace: "ws_1" });
  assert.deepEqual(
    generations.map(({ id, score }) => [id, score]),
    [[id, 0.7]],
  );
  assert.deepEqual(await sums(pool), ["m: 1 0.7 0 0"]);

  const second = await record(id, { correct: false });
  assert.equal(second.score, 0);
  assert.equal(timestampDate(second.recordedAt ?? assert.fail()).getTime(), NOW + 1_000);
  assert.deepEqual(await sums(pool), ["m: 1 0 0 0"]);
  await record(id, { correct: true });
  assert.deepEqual(await sums(pool), ["m: 1 1 0 0"]);
});

test("compares an expected number, option, text, literal and object with the answer", async (t) => {
  const { pool, record } = await open(t);
  const cases: [text: string, expected: string, score: number, kind?: Kind][] = [
    ["So 17 * 23 + 4 = **395**.", "395.0", 1],
    ["The answer is 1,234.50 dollars.", "$1234.5", 1, "maths"],
    ["The answer is 12.", "13", 0, "maths"],
    ["The answer is (b) Paris.", "B", 1],
    ["The answer is (b) Paris.", "c", 0],
    ["The capital is Paris. Answer: Paris", "the Paris", 1],
    ["Answer: Paris", "Lyon", 0],
    ["Yes, because it rains.", "true", 1],
    ["The output is `['A', 'b']`", '["A","b"]', 1, "output"],
    ["The output is `['A', 'b']`", "['a', 'b']", 0, "output"],
  ];
  for (const [text, expected, score, kind = "closed"] of cases) {
    const id = await answered(pool, text, { kind });
    assert.equal((await record(id, { expected })).score, score, `${text} / ${expected}`);
  }
});

test("refuses an expected answer that cannot be compared, and takes it beside a score", async (t) => {
  const { pool, record } = await open(t);
  const prose = await answered(pool, "Once upon a time", { kind: "prose" });
  const option = await answered(pool, "Answer: (b) Paris");
  const unclear = await answered(pool, "It depends.\nOn many things, as so often in life.\n\nSome of them are known.");
  for (const id of [prose, option, unclear]) {
    await assert.rejects(record(id, { expected: "Paris" }), { kind: "invalid_request", field: "expected" });
    assert.deepEqual(await sums(pool), []);
  }
  assert.equal((await record(option, { correct: true, expected: "Paris" })).score, 1);
  assert.deepEqual(await sums(pool), ["m: 1 1 0 0"]);
});

test("counts who was right where drafts disagreed", async (t) => {
  const { pool, record } = await open(t);
  const drafts: [string, string][] = [
    ["a", "4"],
    ["b", "5"],
    ["m", "4"],
  ];
  const settled = await answered(pool, "4", { drafts });
  await record(settled, { correct: true });
  assert.deepEqual(await sums(pool), ["a: 1 1 1 0", "b: 1 0 0 1", "m: 1 1 1 0"]);
  assert.deepEqual(await duels(pool), ["a/b: 1 0", "b/m: 0 1"]);
  // A wrong answer says nothing about the draft that had another one; the expected answer does.
  await record(settled, { correct: false });
  assert.deepEqual(await sums(pool), ["a: 1 0 0 1", "m: 1 0 0 1"]);
  await record(settled, { expected: "5" });
  assert.deepEqual(await sums(pool), ["a: 1 0 0 1", "b: 1 1 1 0", "m: 1 0 0 1"]);
  assert.deepEqual(await duels(pool), ["a/b: 0 1", "b/m: 1 0"]);
  // A score between says how good the answer is, and not which draft is right.
  await record(settled, { score: 0.5 });
  assert.deepEqual(await sums(pool), ["a: 1 0.5 0 0", "m: 1 0.5 0 0"]);
  assert.deepEqual(await duels(pool), []);
  await record(settled, { score: 0 });

  const judged = await answered(pool, "6", {
    drafts: [
      ["a", "4"],
      ["b", "5"],
    ],
  });
  await record(judged, { expected: "6" });
  assert.deepEqual(await sums(pool), ["a: 2 0 0 2", "b: 1 0 0 1", "m: 2 1 1 1"]);
  assert.deepEqual(await duels(pool), ["a/m: 0 1", "b/m: 0 1"]);
});

test("finds only answers of the own workspace, for seven days", async (t) => {
  const { pool, url, clock, office, record } = await open(t);
  const unknown = { kind: "unknown_entity", field: "id" };
  const id = await answered(pool, "Paris");
  await assert.rejects(record(id, { score: 1 }, office(pool).recordOutcome, "ws_2"), unknown);
  for (const other of [newGenerationId(NOW), "gen_1", `gen_${"f".repeat(32)}`, "", "'; --"]) {
    await assert.rejects(record(other, { score: 1 }), unknown);
  }
  for (const outcome of ["upstream_failed", "caller_gone"]) {
    const failed = await answered(pool, "Paris", { row: { outcome } });
    await assert.rejects(record(failed, { score: 1 }), unknown);
  }
  // A day has 24 hours, also where the clocks of the database's time zone change on the next day.
  await pool.query(`alter database ${new URL(url).pathname.slice(1)} set timezone = 'AAA0BBB,J325,J350'`);
  const zoned = openPool(url, { max: 1 });
  t.onTestFinished(() => zoned.end());
  clock.now = NOW + 7 * DAY - 1;
  assert.equal((await record(id, { score: 1 }, office(zoned).recordOutcome)).score, 1);
  clock.now = NOW + 7 * DAY;
  await assert.rejects(record(id, { score: 1 }), unknown);
  assert.deepEqual(await sums(pool), ["m: 1 1 0 0"]);
});

test("refuses an outcome that is not one, and names its field", async (t) => {
  const { record } = await open(t);
  const id = newGenerationId(NOW);
  for (const [outcome, field] of [
    [{}, "score"],
    [{ score: 1, correct: true }, "score"],
    [{ score: 1.1 }, "score"],
    [{ score: -0.1 }, "score"],
    [{ score: Number.NaN }, "score"],
    [{ expected: "x".repeat(20_001) }, "expected"],
  ] as const) {
    await assert.rejects(record(id, outcome), { kind: "invalid_request", field });
  }
});

test("counts an outcome once that two replicas record at the same time", async (t) => {
  const { pool, url, office, record } = await open(t);
  const replicas = Array.from({ length: 2 }, () => openPool(url, { max: 2 }));
  const other = new pg.Client(url);
  await other.connect();
  t.onTestFinished(async () => {
    await Promise.all([other.end(), ...replicas.map((replica) => replica.end())]);
  });
  const drafts: [string, string][] = [
    ["a", "4"],
    ["b", "5"],
    ["m", "4"],
  ];
  const id = await answered(pool, "4", { drafts });
  await other.query("begin; select from outcomes for update");
  const calls = replicas.map((replica) => record(id, { expected: "4" }, office(replica).recordOutcome));
  const waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await until(async () => (await pool.query(waits)).length === replicas.length);
  await other.query("commit");
  const [first, second] = await Promise.all(calls);
  assert.deepEqual(second, first);
  assert.deepEqual(await sums(pool), ["a: 1 1 1 0", "b: 1 0 0 1", "m: 1 1 1 0"]);
  assert.deepEqual(await duels(pool), ["a/b: 1 0", "b/m: 0 1"]);
});

test("has the same sums after any outcomes as after the last one of each answer", async (t) => {
  const { pool, record } = await open(t);
  const make = () =>
    Promise.all([
      answered(pool, "4"),
      answered(pool, "4", {
        drafts: [
          ["a", "4"],
          ["b", "5"],
          ["m", "4"],
        ],
      }),
      answered(pool, "6", {
        drafts: [
          ["a", "4"],
          ["b", "5"],
        ],
      }),
      answered(pool, "Once", {
        kind: "prose",
        drafts: [
          ["a", "x"],
          ["b", "y"],
        ],
      }),
      answered(pool, "4", { row: { outcome: "cut_short" } }),
    ]);
  const outcome = fc.oneof(
    fc.record({ score: fc.constantFrom(0, 0.1, 0.7, 1) }),
    fc.record({ correct: fc.boolean() }),
    fc.record({ score: fc.constantFrom(0, 0.3, 1), expected: fc.constantFrom("4", "5", "6", "c") }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(4), outcome), { minLength: 1, maxLength: 12 }), async (all) => {
      const ids = await make();
      for (const [place, given] of all) await record(ids[place] ?? "", given);
      const after = [await sums(pool), await duels(pool)];
      await pool.query("truncate outcomes, model_outcomes, model_duels");
      const fresh = await make();
      for (const [place, given] of new Map(all)) await record(fresh[place] ?? "", given);
      assert.deepEqual(after, [await sums(pool), await duels(pool)]);
      await pool.query("truncate outcomes, model_outcomes, model_duels");
    }),
    { numRuns: 25 },
  );
});

test("stores nothing of an expected answer", async (t) => {
  const { pool, record } = await open(t);
  const id = await answered(pool, "Answer: Popocatepetl");
  assert.equal((await record(id, { expected: "Popocatepetl" })).score, 1);
  const tables = await pool.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public'",
  );
  assert.ok(tables.some(({ name }) => name === "outcomes_rest"));
  for (const { name } of tables) {
    const rows = await pool.query<{ row: string }>(`select t::text as row from "${name}" t`);
    for (const { row } of rows) assert.doesNotMatch(row, /popocat/i, name);
  }
});
