import assert from "node:assert/strict";
import { mock } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import pg from "pg";
import { test } from "vitest";
import { AMPLE, AWAY, doneRow, scripted } from "../helpers/scripted.ts";
import { until } from "../helpers/until.ts";

const ask = (requestId: string, of: object = {}) => ({ requestId, hold: 10, input: 1, ...of });
const postOf = (requestId: string) => ({ requestId, charge: 5, output: 1, row: {} });

/** An error of Postgres. */
function refusal(code: string): Error {
  return Object.assign(new pg.DatabaseError("refused", 0, "error"), { code });
}

type Script = ReturnType<typeof scripted>;

/** Admits a request by a statement. */
async function asked({ grants, take }: Script, id: string, reply: object, workspace = "ws_1"): Promise<void> {
  const admitted = grants.admit(workspace, ask(id));
  await take()[0]?.answer({ [workspace]: reply });
  await admitted;
}

/** Lets two workspaces wait, so that the next statement has an item of each. */
async function together(script: Script) {
  const { grants, take } = script;
  const first = grants.admit("ws_0", ask("q"));
  const [statement] = take();
  const [a, b] = ["ws_1", "ws_2"].map((workspace) => Promise.resolve(grants.admit(workspace, ask(workspace))));
  await statement?.answer({ ws_0: doneRow() });
  await first;
  const [both] = take();
  assert.deepEqual(
    both?.items.map(({ workspace }) => workspace),
    ["ws_1", "ws_2"],
  );
  return { a: a as Promise<unknown>, b: b as Promise<unknown>, both };
}

/** The workspaces of statements. */
const named = (statements: readonly { items: readonly { workspace: string }[] }[]) =>
  statements.map(({ items }) => items.map(({ workspace }) => workspace).join(" "));

test("asks for each workspace alone when one of a statement is locked, all at the same time", async (t) => {
  const script = scripted(t);
  const { a, b, both } = await together(script);
  const refused = assert.rejects(a, { kind: "overloaded" });
  await both.fail(refusal("55P03"));
  const alone = script.take();
  assert.deepEqual(named(alone), ["ws_1", "ws_2"]);
  await alone[1]?.answer({ ws_2: doneRow() });
  await alone[0]?.fail(refusal("55P03"));
  await refused;
  assert.equal(await b, undefined);
  assert.deepEqual(
    script.journal.calls.filter((call) => call === "unavailable"),
    [],
  );
});

test("asks for each workspace alone when a statement is refused, and denies the request at fault", async (t) => {
  const script = scripted(t);
  const { a, b, both } = await together(script);
  const denied = assert.rejects(a, /nothing has recorded the request ws_1/);
  await both.fail(refusal("22003"));
  const [first] = script.take();
  assert.deepEqual(named([first ?? both]), ["ws_1"]);
  await first?.fail(refusal("22003"));
  // Which of its requests it is.
  const [again] = script.take();
  assert.deepEqual(named([again ?? both]), ["ws_1"]);
  await again?.fail(refusal("22003"));
  const [second] = script.take();
  assert.deepEqual(named([second ?? both]), ["ws_2"]);
  await second?.answer({ ws_2: doneRow() });
  await denied;
  assert.equal(await b, undefined);
  assert.ok(script.journal.calls.includes("refuse ws_1"));
});

test("asks again when the database has executed a later item", async (t) => {
  const script = scripted(t);
  const admitted = script.grants.admit("ws_1", ask("a"));
  await script.take()[0]?.answer({});
  const [again] = script.take();
  assert.deepEqual(
    again?.items[0]?.asks?.map(({ requestId }) => requestId),
    ["a"],
  );
  await again?.answer({ ws_1: doneRow() });
  assert.equal(await admitted, undefined);
  assert.deepEqual(script.journal.calls, ["available", "available"]);
});

test("sends what has failed again after ten milliseconds, also if nothing happens", async (t) => {
  mock.timers.enable({ apis: ["setInterval"] });
  t.onTestFinished(() => mock.timers.reset());
  const { grants, take, statements, journal } = scripted(t);
  const refused = assert.rejects(async () => grants.admit("ws_1", ask("a")), { kind: "overloaded" });
  await take()[0]?.fail(AWAY);
  await refused;
  assert.deepEqual(journal.calls, ["unavailable"]);
  await until(() => statements.length > 0);
});

test("posts in the background what was appended to the log, and nothing of an ended grant", async (t) => {
  const script = scripted(t);
  const { grants, take, statements } = script;
  for (const id of ["a", "b", "c"]) await asked(script, id, doneRow({ extra: AMPLE }));
  const settled = grants.settle(postOf("a"));
  await turn();
  const [first] = take();
  assert.equal(first?.name, "append_settlement");
  await first?.answer(["ws_1"]);
  assert.equal(await settled, 5);
  await until(() => statements.some(({ name }) => name === "post_settlements"));
  take();
  const denied = assert.rejects(grants.settle(postOf("b")), { kind: "overloaded" });
  await turn();
  await take()[0]?.answer([]);
  await denied;
  await grants.close();
  assert.ok(!statements.some(({ name }) => name === "post_settlements"));
});

test("removes from the journal what the database has taken, and refuses what it cannot write", async (t) => {
  const script = scripted(t);
  const { grants, take, statements, journal, written } = script;
  for (const id of ["a", "b", "c"]) await asked(script, id, doneRow({ extra: AMPLE }));
  const [kept, lost] = [grants.settle(postOf("a")), grants.settle(postOf("b"))];
  const denied = assert.rejects(lost, { kind: "overloaded" });
  await turn();
  await take()[0]?.fail(AWAY);
  assert.ok(journal.calls.includes("write ws_1"));
  written(["a"], true);
  written(["b"], false);
  assert.equal(await kept, 5);
  await denied;
  assert.ok(journal.calls.includes("refuse b"));
  await until(() => statements.length > 0);
  await take()[0]?.answer(["ws_1"]);
  assert.ok(journal.calls.includes("remove a"));
});

test("sends at its end at once what has just been settled, and then returns all grants", async (t) => {
  const script = scripted(t);
  const { grants, take } = script;
  await asked(script, "a", doneRow({ extra: AMPLE }));
  await asked(script, "b", doneRow({ extra: AMPLE }), "ws_2");
  const settled = grants.settle(postOf("a"));
  let isClosed = false;
  const closed = grants.close().then(() => (isClosed = true));
  const items = [];
  const start = performance.now();
  let sent = take();
  assert.ok(sent.some((one) => one.items.some(({ posts }) => posts.length > 0)));
  for (; !isClosed; sent = take()) {
    for (const one of sent) {
      const names = one.items.map(({ workspace }) => workspace);
      items.push(...one.items);
      const rows = Object.fromEntries(names.map((name) => [name, doneRow({ verdicts: [] })]));
      await one.answer(one.name === "append_settlement" ? names : rows);
    }
    await turn();
  }
  await closed;
  assert.equal(await settled, 5);
  assert.deepEqual(
    items.flatMap(({ posts }) => posts.map(({ request_id }) => request_id)),
    ["a"],
  );
  assert.deepEqual(
    items.filter(({ close }) => close).map(({ workspace }) => workspace),
    ["ws_1"],
  );
  // The request of the other one still runs.
  assert.deepEqual(
    items.filter(({ workspace }) => workspace === "ws_2").map(({ credit }) => credit),
    [0],
  );
  assert.ok(performance.now() - start < 900);
});

test("waits at its end for the statement under way, and then returns what that has reserved", async (t) => {
  const { grants, take, statements } = scripted(t);
  const admitted = grants.admit("ws_1", ask("a", { key: "k", body: "b" }));
  const [statement] = take();
  let isClosed = false;
  const closed = grants.close().then(() => (isClosed = true));
  await statement?.answer({ ws_1: doneRow({ verdicts: [{ response: "eA==" }], extra: AMPLE }) });
  await admitted;
  await until(() => statements.length > 0);
  assert.equal(isClosed, false);
  const [last] = take();
  assert.equal(last?.items[0]?.close, true);
  await last?.answer({ ws_1: doneRow({ verdicts: [] }) });
  await closed;
});

test("waits at its end for the database, but not long, and not while the journal has settlements", async (t) => {
  for (const [size, isWaiting] of [
    [1, false],
    [0, true],
  ] as const) {
    mock.timers.enable({ apis: ["setInterval"] });
    t.onTestFinished(() => mock.timers.reset());
    const script = scripted(t);
    await asked(script, "a", doneRow({ extra: AMPLE }));
    script.play.isAway = true;
    const settled = script.grants.settle(postOf("a"));
    script.journal.size = size;
    await turn();
    script.written(["a"], true);
    await settled;
    const before = script.statements.length;
    const start = performance.now();
    await script.grants.close();
    const took = performance.now() - start;
    const sent = script.statements.length - before;
    assert.equal(sent > 2, isWaiting);
    // Time for the next statement, which it must not send any more.
    await sleep(50);
    mock.timers.tick(1_000);
    mock.timers.reset();
    assert.equal(script.statements.length - before, sent);
    if (isWaiting) assert.ok(took >= 990 && took < 4_000, `${took} ms`);
  }
});

test("is closed at once when nothing is reserved, and keeps no process alive meanwhile", async (t) => {
  const { grants, take } = scripted(t);
  const timers = () => process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
  void grants.admit("ws_1", ask("a", { key: "k", body: "b" }));
  const [statement] = take();
  const before = timers();
  const closed = grants.close();
  assert.equal(timers(), before);
  await statement?.answer({ ws_1: doneRow({ verdicts: [{ response: "eA==" }], grant: 0 }) });
  const start = performance.now();
  await closed;
  assert.ok(performance.now() - start < 900);
});
