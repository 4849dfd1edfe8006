import assert from "node:assert/strict";
import { test } from "vitest";
import { done, named, PLENTY, Replica } from "../../helpers/replica.ts";
import { headroomOf, NO_USE } from "../../helpers/shares.ts";

const USER = ["user:u"];

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
