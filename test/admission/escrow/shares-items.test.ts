import assert from "node:assert/strict";
import { test } from "vitest";
import { Shares } from "../../../src/admission/escrow/shares.ts";
import { asked, headroomOf, NO_USE, NOTHING_ELSE, postOf, sharesOf } from "../../helpers/shares.ts";

test("observes at most 20,000 subjects, of all workspaces", () => {
  const observed = { count: 0 };
  const all = [new Shares(observed), new Shares(observed)];
  for (let i = 0; i < 10_001; i++)
    for (const shares of all) shares.admitted({ requestId: "r", hold: 1, input: 1, subjects: [`user:${i}`] }, 0);
  assert.equal(observed.count, 20_000);
  assert.equal(all[0]?.get("user:10000"), undefined);
  all[0]?.clear();
  assert.equal(observed.count, 10_000);
  // A request without subjects adds none.
  all[0]?.admitted({ requestId: "r", hold: 1, input: 1 }, 0);
  all[0]?.report("exchange", [{ requestId: "r", hold: 1, input: 1, retryAt: 0 }], [], 0, false);
  assert.equal(observed.count, 10_000);
});

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
  // This one has enough for what is expected of it.
  shares.admitted(asked("user:c"), 0);
  shares.take(asked("user:c"));
  assert.equal(shares.isLow(0), true);
  const spares = shares
    .report("exchange", [], [], 0, false)
    .map(({ subject, spare, returns }) => [subject, spare?.n, returns]);
  assert.deepEqual(spares, [
    ["user:a", 8, undefined],
    ["user:b", 5, undefined],
    ["user:c", undefined, undefined],
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
  assert.deepEqual([asking?.returns, asking?.spare], [true, { n: 8, credit: 10, input: 1, output: 1 }]);
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

test("owes for no settlement of an earlier grant", () => {
  const shares = sharesOf(["user:a"], 3);
  shares.posting([{ ...postOf("user:a", 4), admittedBy: "r0" }], true);
  assert.equal(shares.get("user:a")?.owed, 0);
  shares.posting([postOf("user:a", 4)], false);
  assert.equal(shares.get("user:a")?.owed, 4);
});

test("says nothing of the subject of a settlement of which all was said", () => {
  const shares = sharesOf(["user:a"], 3);
  assert.deepEqual(shares.report("append", [], [postOf("user:a", 0)], 0, false), []);
});

test("has nothing to return of a subject of which nothing is reserved", () => {
  const shares = new Shares({ count: 0 });
  shares.admitted(asked("user:a"), 0);
  shares.callBack(0);
  assert.equal(shares.mustReturn, false);
});

test("takes nothing in advance for a subject whose item has changed nothing", () => {
  const shares = sharesOf(["user:a"], 3);
  for (let i = 0; i < 3; i++) {
    shares.admitted(asked("user:a"), 0);
    shares.take(asked("user:a"));
  }
  shares.takeBack(shares.report("append", [], [], 0, false), []);
  const [report] = shares.report("exchange", [], [], 0, false);
  assert.deepEqual([report?.returns, report?.spare], [true, undefined]);
});

test("returns what a subject has when a part of it has a cap that it did not have", () => {
  const shares = sharesOf(["user:a"], 3);
  const share = shares.get("user:a");
  assert.ok(share);
  share.free.input = Number.POSITIVE_INFINITY;
  shares.take(asked("user:a"));
  const spare = { n: 1, credit: 10, input: 1, output: 1, minute: 60_000 };
  const reports = [{ subject: "user:a", used: NO_USE, held: { credit: 10, running: 1 }, spare }];
  shares.receive(reports, { ...NOTHING_ELSE, subjects: [headroomOf(1, "user:a")] }, 0);
  assert.equal(shares.mustReturn, true);
});

test("keeps a subject whose request runs, however long it takes", () => {
  const shares = sharesOf(["user:a"], 3);
  shares.admitted(asked("user:a"), 0);
  shares.take(asked("user:a"));
  shares.callBack(0);
  shares.receive(shares.report("exchange", [], [], 0, true), NOTHING_ELSE, 0);
  shares.sweep(60_000);
  assert.equal(shares.get("user:a")?.running, 1);
});

test("knows nothing of subjects after its grant has ended", () => {
  const subjects = Array.from({ length: 1_025 }, (_, i) => `user:${i}`);
  const shares = sharesOf(subjects, 1);
  for (const subject of subjects) shares.take(asked(subject));
  shares.report("append", [], [], 0, false);
  shares.callBack(0, "user:1");
  assert.deepEqual([shares.isBehind, shares.mustReturn], [true, true]);
  shares.clear();
  assert.deepEqual([shares.isBehind, shares.mustReturn, shares.get("user:1")], [false, false, undefined]);
  assert.deepEqual(shares.report("exchange", [], [], 0, false), []);
});

test("says once what a subject has used that returns and is one of too many", () => {
  const subjects = Array.from({ length: 1_025 }, (_, i) => `user:${i}`);
  const shares = sharesOf(subjects, 1);
  for (const subject of subjects) shares.take(asked(subject));
  shares.callBack(0, "user:1024");
  const last = shares.report("exchange", [], [], 0, true).at(-1);
  assert.deepEqual([last?.subject, last?.used.requests, last?.returns], ["user:1024", 1, true]);
  assert.deepEqual(shares.report("exchange", [], [], 0, true), []);
});
