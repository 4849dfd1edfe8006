import assert from "node:assert/strict";
import { test } from "vitest";
import type { Ask, Post, Reply, SubjectGrant } from "../../../src/admission/escrow/exchange.ts";
import { Shares } from "../../../src/admission/escrow/shares.ts";
import { done, named, PLENTY, Replica } from "../../helpers/replica.ts";

const USER = ["user:u"];
const NO_USE = { requests: 0, input: 0 };

/** Headroom of a subject for `n` requests of the helper, and of what has no cap. */
const headroomOf = (n: number, subject = "user:u", msLeft = 20_000): SubjectGrant => ({
  subject,
  extra: { ...PLENTY, credit: 10 * n, requests: n },
  msLeft,
});

/** A replica that runs q0, q1 and q2 of a user, and has headroom of the user for `n` more. */
function sharing(n: number, msLeft?: number): Replica {
  const replica = new Replica();
  for (const [i, subjects] of [[], [], [headroomOf(n, "user:u", msLeft)]].entries()) {
    replica.request(`q${i}`, i, { subjects: USER });
    const reply = done([{}], PLENTY);
    replica.receive(i, reply.state === "done" ? { ...reply, subjects } : reply);
  }
  assert.deepEqual(replica.items, []);
  return replica;
}

const ask = (replica: Replica, id: string, now: number, subjects: readonly string[] = USER) =>
  named(replica.request(id, now, { subjects }));

test("admits requests of a subject that has headroom, and asks for the one that it does not contain", () => {
  const replica = sharing(2);
  assert.deepEqual(ask(replica, "a", 2), ["admit a"]);
  assert.deepEqual(ask(replica, "b", 2), ["admit b"]);
  assert.deepEqual(ask(replica, "c", 2), []);
  const { asks, subjects } = replica.item;
  assert.deepEqual(
    asks.map(({ requestId }) => requestId),
    ["c"],
  );
  // Beside what a and b hold, nothing stays reserved while the database decides.
  const [report] = subjects ?? [];
  assert.deepEqual(
    [report?.subject, report?.used, report?.held, report?.returns],
    ["user:u", { requests: 2, input: 2 }, { credit: 20, running: 2 }, true],
  );
});

test("admits a request only if each of its subjects has headroom, and takes nothing from the others", () => {
  const replica = sharing(1);
  assert.deepEqual(ask(replica, "a", 2, ["user:u", "tag:team=a"]), []);
  // The database decides beside what the replica keeps.
  const asked = replica.item.subjects?.map(({ subject }) => subject);
  assert.deepEqual(asked, []);
  assert.deepEqual(ask(replica, "b", 2), ["admit b"]);
});

test("returns headroom of all subjects of a request that was refused beside it, and asks again", () => {
  const replica = sharing(1);
  ask(replica, "a", 2, ["user:u", "tag:team=a"]);
  const refusal = { refusal: "rate_limited" as const, limit: "user:requests_per_minute", retry_ms: 1_000 };
  replica.receive(3, done([{ refusal, calledBack: true }], PLENTY));
  replica.tell({ type: "tick" }, 50);
  const { asks, subjects } = replica.item;
  assert.deepEqual(
    asks.map(({ requestId }) => requestId),
    ["a"],
  );
  assert.deepEqual(subjects?.find(({ subject }) => subject === "user:u")?.returns, true);
});

test("takes nothing of a subject for a request without it", () => {
  const replica = sharing(1);
  assert.deepEqual(ask(replica, "a", 2, []), ["admit a"]);
  assert.deepEqual(named(replica.request("b", 2)), ["admit b"]);
  assert.deepEqual(ask(replica, "c", 2), ["admit c"]);
});

test("asks after the headroom has ended", () => {
  const replica = sharing(5, 1_000);
  assert.deepEqual(ask(replica, "a", 1_001), ["admit a"]);
  assert.deepEqual(ask(replica, "b", 1_002), []);
});

test("returns headroom of a subject at once that is called back, and keeps that of the workspace", () => {
  for (const subject of ["user:u", "user:*"]) {
    const replica = sharing(5);
    replica.tell({ type: "callBack", workspace: "ws_1", subject }, 2);
    const { keep, subjects } = replica.item;
    assert.deepEqual(subjects, [{ subject: "user:u", used: NO_USE, held: { credit: 0, running: 0 }, returns: true }]);
    assert.ok(keep.credit > 0);
    assert.deepEqual(ask(replica, "a", 2), [], "it asks while it returns");
  }
  const replica = sharing(5);
  for (const subject of ["user:other", "tag:team=*"]) replica.tell({ type: "callBack", workspace: "ws_1", subject }, 2);
  assert.deepEqual(replica.items, []);
  assert.deepEqual(ask(replica, "a", 2), ["admit a"]);
});

test("returns headroom of subjects that is not used", () => {
  const replica = sharing(5);
  replica.tell({ type: "tick" }, 25_000);
  const report = replica.item.subjects?.find(({ subject }) => subject === "user:u");
  assert.deepEqual([report?.held, report?.returns, report?.spare], [{ credit: 0, running: 0 }, true, undefined]);
});

test("says of a settlement whose headroom contains its charge, and of no other", () => {
  const replica = sharing(2);
  ask(replica, "a", 2);
  replica.settle("a", 3);
  assert.deepEqual(
    replica.item.posts.map(({ requestId, shared }) => [requestId, shared]),
    [["a", USER]],
  );
  replica.receive(4, { state: "appended" });
  replica.settle("q0", 5);
  assert.deepEqual(
    replica.item.posts.map(({ requestId, shared }) => [requestId, shared]),
    [["q0", undefined]],
  );
});

test("keeps no headroom of a subject under a grant that has ended", () => {
  const replica = sharing(2);
  ask(replica, "a", 2);
  replica.settle("a", 3);
  replica.receive(4, { state: "ended" });
  assert.equal(replica.escrow.grants.get("ws_1")?.shares.get("user:u"), undefined);
});

test("observes at most 20,000 subjects, of all workspaces", () => {
  const observed = { count: 0 };
  const all = [new Shares(observed), new Shares(observed)];
  for (let i = 0; i < 10_001; i++)
    for (const shares of all) shares.admitted({ requestId: "r", hold: 1, input: 1, subjects: [`user:${i}`] }, 0);
  assert.equal(observed.count, 20_000);
  assert.equal(all[0]?.get("user:10000"), undefined);
  all[0]?.clear();
  assert.equal(observed.count, 10_000);
});

const asked = (subject: string): Ask => ({ requestId: "q", hold: 10, input: 1, subjects: [subject] });
const postOf = (subject: string, charge: number): Post => ({
  ...{ requestId: "q", charge, output: 1, row: {} },
  shared: [subject],
});

const NOTHING_ELSE = done([], PLENTY) as Extract<Reply, { state: "done" }>;

/** Shares of subjects that each have headroom for `n` requests. */
function sharesOf(subjects: readonly string[], n: number): Shares {
  const shares = new Shares();
  // Requests of the subjects ask for headroom, and the answer has it.
  shares.report(
    "exchange",
    subjects.map((subject) => ({ ...asked(subject), retryAt: 0 })),
    [],
    0,
    true,
  );
  const spare = { n, credit: 10, input: 1, output: 1 };
  const report = { used: NO_USE, held: { credit: 0, running: 0 }, returns: true, spare };
  const granted = subjects.map((subject) => headroomOf(n, subject));
  shares.receive(
    subjects.map((subject) => ({ subject, ...report })),
    { ...NOTHING_ELSE, subjects: granted },
    0,
  );
  return shares;
}

test("says of each subject what was used and what has ended since the last item, once", () => {
  const shares = sharesOf(["user:a", "user:b"], 3);
  shares.take(asked("user:a"));
  const [used, ...others] = shares.report("append", [], [], 0, false);
  assert.deepEqual([used?.subject, used?.used, others], ["user:a", { requests: 1, input: 1 }, []]);
  assert.deepEqual(shares.report("append", [], [], 0, false), []);
  shares.ended(asked("user:a"), { charge: 4, output: 1 }, true, 0);
  assert.equal(shares.get("user:a")?.free.credit, 26);
  assert.deepEqual(shares.report("append", [], [postOf("user:a", 4)], 0, false), [
    { subject: "user:a", used: NO_USE, held: { credit: 0, running: 0 } },
  ]);
  shares.ended(asked("user:a"), { charge: 4, output: 1 }, false, 0);
  shares.ended(asked("user:new"), { charge: 4, output: 1 }, true, 0);
  assert.equal(shares.get("user:a")?.free.credit, 26, "it was not admitted here");
  assert.deepEqual(shares.report("append", [], [], 0, false), []);
});

test("takes back an item: its use and its charges count again, and its subjects return", () => {
  const shares = sharesOf(["user:a"], 3);
  shares.take(asked("user:a"));
  shares.ended(asked("user:a"), { charge: 4, output: 1 }, true, 0);
  const posts = [postOf("user:a", 4), postOf("user:new", 1)];
  const reports = shares.report("append", [], posts, 0, false);
  assert.equal(shares.get("user:a")?.owed, 0);
  shares.takeBack([...reports, { subject: "user:new", used: NO_USE, held: { credit: 0, running: 0 } }], posts);
  assert.equal(shares.get("user:a")?.owed, 4);
  assert.equal(shares.mustReturn, true);
  const [report] = shares.report("exchange", [], posts, 0, true);
  assert.deepEqual([report?.used, report?.returns], [{ requests: 1, input: 1 }, true]);
  assert.equal(shares.mustReturn, false);
});

test("returns the headroom of a settlement that nothing can record", () => {
  const shares = sharesOf(["user:a", "user:b"], 3);
  shares.dropped(postOf("user:new", 1));
  assert.equal(shares.mustReturn, false);
  shares.dropped(postOf("user:a", 1));
  assert.equal(shares.mustReturn, true);
  assert.deepEqual(
    shares.report("exchange", [], [], 0, true).map(({ subject, returns }) => [subject, returns]),
    [["user:a", true]],
  );
});

test("calls back the subjects of a template, one subject, or all", () => {
  const called = (of?: string) => {
    const shares = sharesOf(["user:a", "user:b", "tag:team=a", "use"], 1);
    shares.callBack(0, of);
    return shares.report("exchange", [], [], 0, true).map(({ subject }) => subject);
  };
  assert.deepEqual(called("user:*"), ["user:a", "user:b"]);
  assert.deepEqual(called("user:a"), ["user:a"]);
  assert.deepEqual(called("use"), ["use"]);
  assert.deepEqual(called("user:new"), []);
  assert.equal(called().length, 4);
});

test("returns the headroom of at most 256 subjects with one item", () => {
  const subjects = Array.from({ length: 257 }, (_, i) => `user:${i}`);
  const shares = sharesOf(subjects, 1);
  shares.callBack(0);
  assert.equal(shares.report("exchange", [], [], 0, true).length, 256);
  assert.equal(shares.mustReturn, true);
  assert.equal(shares.report("exchange", [], [], 0, true).length, 1);
  assert.equal(shares.mustReturn, false);
});

test("says of at most 1,024 subjects what was used, first of those with settlements, and of the others next", () => {
  const subjects = Array.from({ length: 2_000 }, (_, i) => `user:${i}`);
  const shares = sharesOf(subjects, 3);
  for (const subject of subjects)
    for (let i = 0; i < 3; i++) {
      shares.admitted(asked(subject), 0);
      shares.take(asked(subject));
    }
  assert.equal(shares.isBehind, false);
  const first = shares.report("exchange", [], [postOf("user:1999", 1)], 0, false);
  assert.deepEqual([first.length, first[0]?.subject, shares.isBehind], [1_024, "user:1999", true]);
  // Headroom in advance takes the database longer.
  assert.equal(first.filter(({ spare }) => spare).length, 256);
  // One that returns says what it has used, and not once more.
  shares.callBack(0, "user:1500");
  const second = shares.report("exchange", [], [], 0, false);
  assert.equal(shares.isBehind, false);
  const said = [...first, ...second];
  assert.deepEqual(new Set(said.map(({ subject }) => subject)).size, said.length);
  assert.equal(
    said.reduce((sum, { used }) => sum + used.requests, 0),
    6_000,
  );
});

test("takes more for subjects of which little is left, if one of those that were used needs it", () => {
  const shares = sharesOf(["user:a", "user:b", "user:c"], 4);
  for (const subject of ["user:a", "user:b"])
    for (let i = 0; i < 4; i++) {
      shares.admitted(asked(subject), 0);
      if (subject === "user:a" || i === 0) shares.take(asked(subject));
    }
  assert.equal(shares.isLow(0), true);
  const spares = shares
    .report("exchange", [], [], 0, false)
    .map(({ subject, spare, returns }) => [subject, spare?.n, returns]);
  assert.deepEqual(spares, [
    ["user:a", 8, undefined],
    ["user:b", 5, undefined],
  ]);
  assert.equal(shares.isLow(0), false, "nothing was used since");
  shares.take(asked("user:c"));
  assert.equal(shares.isLow(0), false);
});

test("takes no more in an append, in quiet times, and for one that returns", () => {
  const low = () => {
    const shares = sharesOf(["user:a"], 4);
    for (let i = 0; i < 4; i++) {
      shares.admitted(asked("user:a"), 0);
      shares.take(asked("user:a"));
    }
    return shares;
  };
  assert.equal(low().report("append", [], [], 0, false)[0]?.spare, undefined);
  assert.equal(low().report("exchange", [], [], 0, true)[0]?.spare, undefined);
  const [asking] = low().report("exchange", [{ ...asked("user:a"), retryAt: 0 }], [], 0, false);
  assert.deepEqual([asking?.returns, asking?.spare?.n], [true, 8]);
});

test("forgets a subject of which nothing is reserved when it is idle, and returns what an idle one has first", () => {
  const observed = { count: 0 };
  const shares = new Shares(observed);
  shares.admitted(asked("user:a"), 0);
  shares.sweep(1_999);
  assert.equal(observed.count, 1, "a request may follow");
  shares.sweep(2_998);
  assert.equal(observed.count, 1, "the last search was less than a second ago");
  shares.sweep(2_999);
  assert.deepEqual([observed.count, shares.get("user:a")], [0, undefined]);

  const reserved = sharesOf(["user:b"], 1);
  reserved.sweep(5_000);
  assert.equal(reserved.mustReturn, true);
  reserved.sweep(6_000);
  assert.ok(reserved.get("user:b"), "it still has to return");
  const reports = reserved.report("exchange", [], [], 6_000, true);
  reserved.receive(reports, NOTHING_ELSE, 6_000);
  reserved.sweep(7_000);
  assert.equal(reserved.get("user:b"), undefined);
});
