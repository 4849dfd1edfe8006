import assert from "node:assert/strict";
import { test } from "vitest";
import type { Item, Post, Reply, SubjectReport } from "../../../src/admission/escrow/exchange.ts";
import { execute, findRejected } from "../../../src/admission/escrow/execute.ts";
import type { Pool } from "../../../src/store/pool.ts";
import { makeAccount } from "../../helpers/books.ts";
import { testDatabase } from "../../helpers/database.ts";
import { itemOf, postOf } from "../../helpers/exchange.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;

type Row = Record<string, unknown>;

/** The values of the statement that executes the items. */
async function valuesOf(...items: Item[]): Promise<readonly unknown[]> {
  let sent: readonly unknown[] = [];
  const query = async (_: string, values: readonly unknown[] = []) => {
    sent = values;
    return [];
  };
  await execute({ query } as unknown as Pick<Pool, "query">, "r1", 1, items);
  return sent;
}

/** What a statement says of an item beside another one, read as the database reads it. */
async function rowOf(item: Item): Promise<Row & { posts: Row[]; subjects?: Row[] }> {
  const values = await valuesOf(item, { ...itemOf("ws_2"), mode: item.mode });
  return JSON.parse(String(values.find((one) => String(one).startsWith("["))))[0];
}

/** The answer to an item when the database says this of its workspace. */
async function replyOf(reply: object): Promise<Reply | undefined> {
  const query = async () => [{ replies: { ws_1: reply } }];
  const [found] = await execute({ query } as unknown as Pick<Pool, "query">, "r1", 1, [itemOf("ws_1")]);
  return found;
}

const shared = (id: string, charge: number, output: number, subjects?: readonly string[]): Post => ({
  ...postOf(id, { charge, output }),
  shared: subjects,
});

const report = (of: Partial<SubjectReport> = {}): SubjectReport => ({
  subject: "user:u",
  used: { requests: 2, input: 30 },
  held: { credit: 400, running: 3 },
  ...of,
});

for (const mode of ["exchange", "append"] as const) {
  test(`says of each subject what its posts charge, beside what it reports (${mode})`, async () => {
    const posts = [
      shared("a", 10, 1, ["user:u", "key:k"]),
      shared("b", 20, 2, ["key:k"]),
      shared("c", 40, 4),
      { ...shared("d", 80, 8, ["user:u", "tag:t"]), admittedBy: "r0" },
    ];
    const { subjects } = await rowOf({ ...itemOf("ws_1"), mode, posts, subjects: [report()] });
    const used = { requests: 2, input: 30, held: 400, running: 3 };
    assert.deepEqual(subjects, [
      { subject: "user:u", ...used, credits: 10, output: 1 },
      { subject: "key:k", requests: 0, input: 0, credits: 30, output: 3 },
    ]);
  });

  test(`says nothing of subjects when no request has any (${mode})`, async () => {
    const row = await rowOf({ ...itemOf("ws_1"), mode, posts: [shared("a", 10, 1)] });
    assert.ok(!("subjects" in row));
  });

  test(`names the replica that has admitted a request only if it is another grant's (${mode})`, async () => {
    const posts = [{ ...postOf("a", { charge: 1 }), admittedBy: "r0" }, postOf("b", { charge: 1 })];
    const { posts: rows } = await rowOf({ ...itemOf("ws_1"), mode, posts });
    assert.deepEqual(
      rows.map((row) => [row.request_id, row.admitted_by]),
      [
        ["a", "r0"],
        ["b", undefined],
      ],
    );
  });
}

test("says the same of an item that is appended alone", async () => {
  const held = { credit: 400, running: 3 };
  const used = { requests: 2, input: 30 };
  const posts = [shared("a", 10, 1, ["user:u"]), shared("b", 20, 2)];
  const item: Item = { ...itemOf("ws_1"), mode: "append", seq: 7, grant: 5, after: 6, held, used, posts };
  for (const one of [item, { ...item, subjects: [report()] }]) {
    const { posts: rows, subjects, ...row } = await rowOf(one);
    const order = ["workspace", "seq", "grant", "after", "held", "running_now", "used_requests", "used_input"];
    const expected = [...order, "credits", "output"].map((name) => row[name]);
    assert.deepEqual(await valuesOf(one), ["r1", ...expected, JSON.stringify(rows), JSON.stringify(subjects)]);
    assert.ok(expected.every((value) => value !== undefined));
  }
});

test("asks for headroom of a subject, of this minute where it keeps some", async () => {
  const spare = { n: 5, credit: 10, input: 20, output: 30 };
  const subjects = [
    report({ returns: true, spare }),
    report({ subject: "key:k", spare: { ...spare, minute: 60_000 } }),
  ];
  const { subjects: rows = [] } = await rowOf({ ...itemOf("ws_1"), subjects });
  const size = { n: 5, size_credit: 10, size_input: 20, size_output: 30 };
  const wanted = rows.map(({ n, size_credit, size_input, size_output, returns, minute }) => ({
    ...{ n, size_credit, size_input, size_output, returns, minute },
  }));
  assert.deepEqual(wanted, [
    { ...size, returns: true, minute: undefined },
    { ...size, returns: undefined, minute: 60_000 },
  ]);
});

test("reads a part of the headroom without a limit as limitless, for the workspace and for subjects", async () => {
  const none = { credit: null, running: null, requests: null, input: null, output: null };
  const reply = await replyOf({
    ...{ state: "done", grant: 7, verdicts: [], minute: 60_000, msLeft: 500, isOver: false, left: null },
    extra: { ...none, requests: 3 },
    charges: { a: "12" },
    subjects: [{ subject: "user:u", extra: { ...none, credit: 9 }, ms_left: "250" }],
  });
  const limitless = { running: LIMITLESS, requests: LIMITLESS, input: LIMITLESS, output: LIMITLESS };
  assert.deepEqual(reply, {
    ...{ state: "done", grant: 7, verdicts: [], minute: 60_000, msLeft: 500, isOver: false, left: null },
    // Credit always has a limit.
    extra: { ...limitless, credit: 0, requests: 3 },
    charges: { a: 12 },
    subjects: [{ subject: "user:u", extra: { ...limitless, credit: 9 }, msLeft: 250 }],
  });
});

test("reads an answer that grants nothing to subjects", async () => {
  const extra = { credit: 1, running: 1, requests: 1, input: 1, output: 1 };
  const reply = await replyOf({ state: "done", grant: 7, verdicts: [], extra, charges: {}, minute: 0, msLeft: 0 });
  assert.ok(reply?.state === "done");
  assert.deepEqual([reply.grant, reply.extra, reply.subjects], [7, extra, undefined]);
  assert.deepEqual(await replyOf({ state: "again" }), { state: "again" });
});

test("appends settlements with their sums to the log of a grant, and nothing once it has ended", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10_000 });
  const ask = (requestId: string) => ({ requestId, hold: 1_000, input: 1 });
  const first = { ...itemOf("ws_1"), asks: [ask("a"), ask("b")], close: false };
  const [opened] = await execute(pool, "r1", 1, [first]);
  assert.ok(opened?.state === "done");
  const posts = [postOf("a", { charge: 300, output: 5 }), postOf("b", { charge: 500, output: 8 })];
  const next = { ...itemOf("ws_1"), grant: opened.grant, after: first.seq, mode: "append" as const, posts };
  assert.deepEqual(await execute(pool, "r1", 1, [{ ...next, grant: opened.grant + 1 }]), [{ state: "ended" }]);
  assert.deepEqual(await execute(pool, "r1", 1, [next]), [{ state: "appended" }]);
  const log = await pool.query(
    "select credits_micro::int as credits, output_tokens::int as output from settlement_log",
  );
  assert.deepEqual(log, [{ credits: 800, output: 13 }]);
  await pool.query("select end_grants('ws_1', 'r1')");
  assert.deepEqual(await pool.query("select granted_micro::int as left from accounts"), [{ left: 9_200 }]);
});

test("counts an exchange in the minute of the given time, and answers nothing where nothing is asked", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10_000 });
  const at = Date.UTC(2026, 0, 2, 3, 4, 5);
  const asks = [{ requestId: "a", hold: 1, input: 1 }];
  const [opened] = await execute(pool, "r1", 1, [{ ...itemOf("ws_1"), asks }], at + 0.5);
  assert.equal(opened?.state === "done" && opened.minute, Date.UTC(2026, 0, 2, 3, 4));
  assert.deepEqual(await execute(pool, "r1", 1, []), []);
});

test("frees the idempotency key of a request without an end", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10_000 });
  const asked = (requestId: string) => [{ requestId, hold: 1, input: 1, key: "aa".repeat(32), body: "bb".repeat(32) }];
  const first = { ...itemOf("ws_1"), asks: asked("a"), close: false };
  const [opened] = await execute(pool, "r1", 1, [first]);
  assert.ok(opened?.state === "done");
  const refused = async () => {
    const [reply] = await execute(pool, "r2", 1, [{ ...itemOf("ws_1"), asks: asked("b") }]);
    return reply?.state === "done" && reply.verdicts[0]?.refusal?.refusal;
  };
  const next = {
    ...itemOf("ws_1"),
    grant: opened.grant,
    after: first.seq,
    held: { credit: 1, running: 1 },
    close: false,
  };
  await execute(pool, "r1", 1, [next]);
  assert.equal(await refused(), "idempotency_key_in_use");
  const freed = [{ requestId: "a", key: "aa".repeat(32) }];
  await execute(pool, "r1", 1, [{ ...next, seq: itemOf("ws_1").seq, after: next.seq, freed }]);
  assert.equal(await refused(), undefined);
});

test("refuses to append a figure that the database cannot store, before anything is sent", async () => {
  const item = { ...itemOf("ws_1"), mode: "append" as const };
  for (const output of [0.5, 2 ** 53, Number.NaN])
    await assert.rejects(rowOf({ ...item, posts: [postOf("a", { charge: 1, output })] }), /output_tokens/);
  await rowOf({ ...item, posts: [postOf("a", { charge: 1, output: 2 ** 53 - 1 })] });
});

test("finds the asks and posts that the database refuses, and changes nothing", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10_000 });
  const ask = (requestId: string, hold: number) => ({ requestId, hold, input: 1 });
  const item = { ...itemOf("ws_1"), asks: [ask("a", 100), ask("b", 0.5)] };
  assert.deepEqual(await findRejected(pool, "r1", 1, item), ["b"]);
  const posts = [postOf("c", { charge: 0.5 }), postOf("d", { charge: 0 })];
  assert.deepEqual(await findRejected(pool, "r1", 1, { ...item, posts }), ["b", "c"]);
  assert.deepEqual(await pool.query("select * from grants"), []);
});

test("names all requests of an item when the database accepts each alone", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10_000 });
  const item = {
    ...itemOf("ws_1"),
    asks: [{ requestId: "a", hold: 1, input: 1 }],
    posts: [postOf("b", { charge: 0 })],
  };
  assert.deepEqual(await findRejected(pool, "r1", 1, item), ["a", "b"]);
});

test("blames no request for a database that is away", async () => {
  const away = Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" });
  const pool = { tx: () => Promise.reject(away) } as unknown as Pool;
  const item = { ...itemOf("ws_1"), asks: [{ requestId: "a", hold: 1, input: 1 }] };
  await assert.rejects(findRejected(pool, "r1", 1, item), away);
});
