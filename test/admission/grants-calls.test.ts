import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { mock } from "node:test";
import { test } from "vitest";
import { CALL_BACK, CAP_CALL_BACK, type Grants } from "../../src/admission/grants.ts";
import { WAITING } from "../../src/overload/bounds.ts";
import { AMPLE, AWAY, doneRow, type Statement, scripted } from "../helpers/scripted.ts";

const ask = (requestId: string, of: object = {}) => ({ requestId, hold: 10, input: 1, ...of });
const postOf = (requestId: string) => ({ requestId, charge: 5, output: 1, row: {} });

/** Admits a request by a statement. */
async function asked(
  take: () => Statement[],
  grants: Grants,
  id: string,
  reply: object,
  of: object = {},
): Promise<void> {
  const admitted = grants.admit("ws_1", ask(id, of));
  const [statement] = take();
  assert.ok(statement, `nothing is sent for ${id}`);
  await statement.answer({ ws_1: reply });
  await admitted;
}

/** Whether a function of the database notifies a channel. */
const isNotified = (channel: string) =>
  globSync("src/store/functions/*.sql").some((path) => readFileSync(path, "utf8").includes(`pg_notify('${channel}'`));

test("admits nothing while nothing takes settlements", (t) => {
  const { grants, statements, journal } = scripted(t);
  journal.error = new Error("full");
  assert.throws(() => grants.admit("ws_1", ask("a")), journal.error);
  assert.deepEqual(statements, []);
});

test("refuses requests beyond the number that may wait, until one of them is answered", async (t) => {
  const { grants, take } = scripted(t);
  const answers = Array.from({ length: WAITING.admissions }, (_, i) => grants.admit("ws_1", ask(`q${i}`)));
  for (const one of answers) one?.catch(() => undefined);
  assert.throws(() => grants.admit("ws_1", ask("more")), { kind: "overloaded" });
  await take()[0]?.answer({ ws_1: doneRow({ verdicts: [{}] }) });
  assert.equal(await answers[0], undefined);
  const more = grants.admit("ws_1", ask("more"));
  more?.catch(() => undefined);
  assert.throws(() => grants.admit("ws_1", ask("again")), { kind: "overloaded" });
});

for (const [what, live, n] of [
  ["alone, although call-backs may be lost", 1, 2],
  ["beside others only while it hears call-backs", 2, 0],
] as const) {
  test(`reserves in advance ${what}`, async (t) => {
    const { grants, take } = scripted(t);
    grants.beat(performance.now(), live, false);
    await asked(take, grants, "a", doneRow());
    await asked(take, grants, "b", doneRow());
    void grants.admit("ws_1", ask("c"))?.catch(() => undefined);
    assert.equal(take()[0]?.items[0]?.spare.n, n);
  });
}

test("states what is left of limits, with what it has reserved or returned, while their minute lasts", async (t) => {
  const { grants, take } = scripted(t);
  const left = () => grants.limits("ws_1")?.map(({ name, remaining }) => [name, remaining]);
  assert.equal(left(), undefined);
  await asked(take, grants, "a", doneRow());
  assert.equal(left(), undefined);
  const limits = { requests_per_minute: [50, 5], input_tokens_per_day: [500, 10], output_tokens_per_month: [90, 1] };
  const extra = { ...AMPLE, requests: 3, input: 20, output: 30 };
  await asked(take, grants, "b", doneRow({ extra, left: limits }));
  const all = [
    ["requests_per_minute", 8],
    ["input_tokens_per_day", 30],
    ["output_tokens_per_month", 31],
  ];
  assert.deepEqual(left(), all);
  assert.ok((grants.limits("ws_1")?.[0]?.resetMs ?? 0) > 20_000);
  // What an item returns is left, as long as no answer says more.
  grants.callBack("ws_1");
  await take()[0]?.answer({ ws_1: doneRow() });
  assert.deepEqual(left(), all);
  await asked(take, grants, "c", doneRow({ left: limits, msLeft: -1 }));
  assert.equal(left(), undefined);
  await asked(take, grants, "d", doneRow({ left: null }));
  assert.equal(left(), undefined);
});

test("states no limits from the end of their minute on", async (t) => {
  const { mock: now } = mock.method(performance, "now", () => 1_000);
  t.onTestFinished(() => now.restore());
  const { grants, take } = scripted(t);
  await asked(take, grants, "a", doneRow({ left: { requests_per_minute: [50, 5] }, msLeft: 500 }));
  const at = (ms: number) => {
    now.mockImplementation(() => ms);
    return grants.limits("ws_1")?.length;
  };
  assert.deepEqual([at(1_499), at(1_500)], [1, undefined]);
});

test("counts what it returns of more than it needs as left", async (t) => {
  const { grants, take } = scripted(t);
  await asked(take, grants, "a", doneRow());
  const left = { requests_per_day: [500, 5], input_tokens_per_day: [5_000, 5], output_tokens_per_day: [5_000, 5] };
  await asked(take, grants, "b", doneRow({ extra: AMPLE, left }));
  const remaining = () => grants.limits("ws_1")?.map((one) => one.remaining);
  assert.deepEqual(remaining(), [105, 1_005, 1_005]);
  void grants.admit("ws_1", ask("c", { hold: 2_000 }))?.catch(() => undefined);
  const [item] = take()[0]?.items ?? [];
  assert.ok(item);
  const { requests, input, output } = item;
  for (const kept of [requests, input, output]) assert.ok(kept > 0 && kept < 100, `${kept}`);
  assert.deepEqual(remaining(), [105, 1_005, 1_005]);
});

test("counts what has no limit as nothing that was returned", async (t) => {
  const { grants, take } = scripted(t);
  await asked(take, grants, "a", doneRow());
  const extra = { ...AMPLE, requests: null, output: null };
  await asked(take, grants, "b", doneRow({ extra, left: { input_tokens_per_minute: [5_000, 5] } }));
  grants.callBack("ws_1");
  await take()[0]?.answer({ ws_1: doneRow({ extra: { requests: null, output: null } }) });
  assert.equal(grants.limits("ws_1")?.[0]?.remaining, 1_005);
});

test("closes a grant that it finds", (t) => {
  const { grants, take } = scripted(t);
  grants.find("ws_1", 9);
  const [item] = take()[0]?.items ?? [];
  assert.deepEqual([item?.workspace, item?.close], ["ws_1", true]);
});

test("returns what is not used of a workspace that is called back", async (t) => {
  const { grants, take } = scripted(t);
  await asked(take, grants, "a", doneRow({ extra: AMPLE }));
  grants.callBack("ws_2");
  assert.deepEqual(take(), []);
  grants.callBack("ws_1");
  const [item] = take()[0]?.items ?? [];
  assert.deepEqual([item?.workspace, item?.credit, item?.close], ["ws_1", 0, false]);
  assert.ok(isNotified(CALL_BACK));
});

test("returns what is not used of one subject that is called back", async (t) => {
  const { grants, take } = scripted(t);
  const names = ["user:a b", "key:k"];
  for (const id of ["a", "b", "c"]) {
    const subjects = names.map((subject) => ({ subject, extra: AMPLE, ms_left: 30_000 }));
    await asked(take, grants, id, doneRow({ extra: { ...AMPLE, credit: 10 }, subjects }), { subjects: names, hold: 9 });
  }
  grants.callBackSubject("ws_1 user:a");
  assert.deepEqual(take(), []);
  grants.callBackSubject("ws_1 user:a b");
  const [item] = take()[0]?.items ?? [];
  const returning = item?.subjects?.filter(({ returns }) => returns).map(({ subject }) => subject);
  assert.deepEqual([item?.workspace, returning], ["ws_1", ["user:a b"]]);
  assert.ok(isNotified(CAP_CALL_BACK));
});

test("reports what was admitted in memory, and waits until the database knows it", async (t) => {
  const { grants, take } = scripted(t);
  await grants.report("ws_1");
  await asked(take, grants, "a", doneRow({ extra: AMPLE }));
  assert.equal(grants.admit("ws_1", ask("b")), undefined);
  let isKnown = false;
  const reported = grants.report("ws_1").then(() => (isKnown = true));
  const [statement] = take();
  assert.ok(statement);
  await new Promise(setImmediate);
  assert.equal(isKnown, false);
  await statement.answer({ ws_1: doneRow({ verdicts: [] }) });
  await reported;
  assert.deepEqual(take(), []);
});

test("waits for a report no longer than for a database that is away", async (t) => {
  const { grants, take, play } = scripted(t);
  await asked(take, grants, "a", doneRow({ extra: AMPLE }));
  assert.equal(grants.admit("ws_1", ask("b")), undefined);
  play.isAway = true;
  await grants.report("ws_1");
});

test("says that a cap allows only the effort low, and gives the kept response", async (t) => {
  const { grants, take } = scripted(t);
  const low = grants.admit("ws_1", ask("a"));
  await take()[0]?.answer({ ws_1: doneRow({ verdicts: [{ low: true }] }) });
  assert.deepEqual(await low, { isLow: true });
  const again = grants.admit("ws_1", ask("b", { key: "k", body: "b" }));
  await take()[0]?.answer({ ws_1: doneRow({ verdicts: [{ response: "eA==" }] }) });
  assert.deepEqual(await again, { response: "eA==" });
});

test("refuses with the limit that the database names, and as overloaded when it is away", async (t) => {
  const { grants, take } = scripted(t);
  const refused = assert.rejects(async () => grants.admit("ws_1", ask("a")), {
    ...{ kind: "rate_limited", limit: "requests_per_minute", retryAfterMs: 7 },
  });
  const refusal = { refusal: "rate_limited", limit: "requests_per_minute", retry_ms: 7 };
  await take()[0]?.answer({ ws_1: doneRow({ verdicts: [{ refusal }] }) });
  await refused;
  const lost = assert.rejects(async () => grants.admit("ws_1", ask("b")), { kind: "overloaded" });
  await take()[0]?.fail(AWAY);
  await lost;
});

test("tells how long asks and settlements have waited for their statement", async (t) => {
  const { mock: now } = mock.method(performance, "now", () => 1_000);
  t.onTestFinished(() => now.restore());
  const waits: [stage: string, ms: readonly number[]][] = [];
  const batch = (stage: string, ms: readonly number[]) => void waits.push([stage, ms]);
  const { grants, take } = scripted(t, { telemetry: { batch } as never });
  const first = grants.admit("ws_1", ask("a"));
  const second = grants.admit("ws_1", ask("b"));
  now.mockImplementation(() => 1_030);
  await take()[0]?.answer({ ws_1: doneRow() });
  await first;
  await take()[0]?.answer({ ws_1: doneRow({ extra: AMPLE }) });
  await second;
  const settled = grants.settle(postOf("a"));
  now.mockImplementation(() => 1_050);
  await new Promise(setImmediate);
  const [statement] = take();
  await statement?.answer(statement.name === "exchange" ? { ws_1: doneRow({ verdicts: [] }) } : ["ws_1"]);
  await settled;
  assert.deepEqual(waits, [
    ["admission", [0]],
    ["admission", [30]],
    ["settlement", [20]],
  ]);
});

test("returns what is idle when time passes and nothing else happens", async (t) => {
  const { mock: now } = mock.method(performance, "now", () => 1_000);
  mock.timers.enable({ apis: ["setInterval"] });
  t.onTestFinished(() => {
    now.restore();
    mock.timers.reset();
  });
  const { grants, take } = scripted(t);
  await asked(take, grants, "a", doneRow({ extra: AMPLE }));
  now.mockImplementation(() => 21_000);
  assert.deepEqual(take(), []);
  mock.timers.tick(250);
  assert.equal(take()[0]?.items[0]?.credit, 0);
});

test("settles what an earlier process has left, which nobody waits for", async (t) => {
  const { grants, take, journal } = scripted(t);
  journal.left.push({ workspaceId: "ws_1", post: { ...postOf("left"), admittedBy: "r0" } });
  grants.recover();
  const [statement] = take();
  const sent = statement?.items.map(({ workspace, posts }) => [workspace, posts.map((post) => post.request_id)]);
  assert.deepEqual(sent, [["ws_1", ["left"]]]);
  await statement?.answer({ ws_1: doneRow({ verdicts: [] }) });
  assert.deepEqual(journal.calls, ["available", "remove left"]);
});
