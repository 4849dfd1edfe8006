import assert from "node:assert/strict";
import { test } from "vitest";
import type { Item, Reply } from "../../../src/admission/escrow/exchange.ts";
import { done, named, PLENTY, Replica } from "../../helpers/replica.ts";
import { headroomOf } from "../../helpers/shares.ts";

const USER = ["user:u"];

/** The answer to an item, with headroom of the user for `n` requests. */
function sharedDone(n: number, verdicts: readonly object[] = [{}]): Reply {
  return { ...(done(verdicts, PLENTY) as Extract<Reply, { state: "done" }>), subjects: n > 0 ? [headroomOf(n)] : [] };
}

/** A replica that runs q0, q1 and q2 of a user, and has headroom of the user for `n` more. */
function sharing(n: number): Replica {
  const replica = new Replica();
  for (const [i, of] of [0, 0, n].entries()) {
    replica.request(`q${i}`, i, { subjects: USER });
    replica.receive(i, sharedDone(of));
  }
  return replica;
}

const admit = (replica: Replica, id: string, now: number) =>
  assert.deepEqual(named(replica.request(id, now, { subjects: USER })), [`admit ${id}`]);
const shareOf = (replica: Replica) => replica.escrow.grants.get("ws_1")?.shares.get("user:u");
const usesOf = (item: Item) => item.subjects?.map(({ subject, used, returns }) => [subject, used.requests, returns]);

test("gives a subject back what an answer did not use of its hold", () => {
  const replica = sharing(3);
  admit(replica, "a", 3);
  assert.equal(shareOf(replica)?.free.credit, 20);
  replica.settle("a", 4, 4);
  const { free, running } = shareOf(replica) ?? {};
  assert.deepEqual([free?.credit, free?.running, running], [26, 100, 0]);
});

test("takes headroom of a subject with the end of an answer when little is left, and appends else", () => {
  for (const [n, mode] of [
    [4, "exchange"],
    [40, "append"],
  ] as const) {
    const replica = sharing(n);
    for (const id of ["a", "b", "c", "d"]) admit(replica, id, 3);
    replica.settle("a", 3, 10);
    assert.equal(replica.item.mode, mode);
    assert.equal(replica.item.subjects?.[0]?.spare !== undefined, mode === "exchange");
  }
});

test("returns headroom of a subject with the next end of an answer", () => {
  const replica = sharing(40);
  for (const id of ["a", "b"]) {
    admit(replica, id, 3);
    replica.settle(id, 3);
  }
  assert.equal(replica.item.mode, "append");
  replica.tell({ type: "callBack", workspace: "ws_1", subject: "user:u" }, 4);
  replica.receive(5, { state: "appended" });
  assert.deepEqual([replica.item.mode, replica.item.posts.map(({ requestId }) => requestId)], ["exchange", ["b"]]);
  assert.deepEqual(usesOf(replica.item), [["user:u", 1, true]]);
});

test("says again what a subject has used when an item has changed nothing", () => {
  const replica = sharing(40);
  admit(replica, "a", 3);
  replica.settle("a", 3);
  assert.deepEqual(usesOf(replica.item), [["user:u", 1, undefined]]);
  replica.receive(4, { state: "rejected", requestIds: [] });
  assert.deepEqual(usesOf(replica.item), [["user:u", 1, true]]);
});

test("has no headroom of subjects after its grant is closed", () => {
  const replica = sharing(3);
  replica.tell({ type: "callBack", workspace: "ws_1" }, 3);
  for (const id of ["q0", "q1", "q2"]) replica.settle(id, 3);
  while (!replica.item.close) replica.receive(4, sharedDone(0, []));
  assert.ok(shareOf(replica));
  replica.receive(4, sharedDone(0, []));
  assert.equal(shareOf(replica), undefined);
});

test("owes nothing of a subject for a settlement that nothing can record, whether it waits or is sent", () => {
  for (const isSent of [true, false]) {
    const replica = sharing(40);
    for (const id of ["a", "b"]) {
      admit(replica, id, 3);
      replica.settle(id, 3);
    }
    replica.fail(4);
    const lost = isSent ? "a" : "b";
    replica.tell({ type: "journaled", requestIds: [lost], isWritten: false }, 5);
    assert.equal(shareOf(replica)?.owed, isSent ? 5 : 0, lost);
    assert.equal(shareOf(replica)?.mustReturn, true);
  }
});

test("closes no grant while a request and a settlement wait", () => {
  const replica = new Replica();
  const ids = Array.from({ length: 258 }, (_, i) => `q${i}`);
  for (const id of ids) replica.request(id, 0);
  while (replica.items.length > 0) replica.receive(0, done(replica.item.asks.map(() => ({}))));
  replica.tell({ type: "callBack", workspace: "ws_1" }, 1);
  for (const id of ids) replica.settle(id, 1);
  replica.request("one more", 1);
  replica.receive(1, done());
  const { asks, posts, close } = replica.item;
  assert.deepEqual([asks.length, posts.length, close], [1, 256, false]);
  replica.receive(1, done([{}]));
  assert.equal(replica.item.posts.length, 1);
});

test("returns headroom of all subjects when it becomes deaf, and none of any with another heartbeat", () => {
  const replica = sharing(40);
  replica.tell({ type: "beat", sentAt: 3, isDeaf: false }, 3);
  assert.deepEqual([replica.items, shareOf(replica)?.mustReturn], [[], false]);
  replica.tell({ type: "beat", sentAt: 4, isDeaf: true }, 4);
  assert.deepEqual(usesOf(replica.item), [["user:u", 0, true]]);
});

test("observes at most 20,000 subjects, and others once a grant has ended or was never opened", () => {
  const subjectsOf = (n: number) => Array.from({ length: 8 }, (_, i) => `user:${n}_${i}`);
  const refusal = { refusal: "rate_limited" as const, limit: "requests_per_minute" };
  for (let isRefused of [false, true]) {
    const replica = new Replica();
    const reply = ({ asks }: Item): Reply => {
      const answer = done(asks.map(() => (isRefused ? { refusal } : {})));
      return isRefused ? { ...(answer as Extract<Reply, { state: "done" }>), grant: 0 } : answer;
    };
    const fill = (workspace: string, now: number) => {
      for (let n = 0; n <= 2_500; n++)
        replica.request(`${workspace} ${n}`, now, { workspace, subjects: subjectsOf(n) });
      while (replica.items.length > 0) replica.receive(now, ...replica.items.map(reply));
      const { shares } = replica.escrow.grants.get(workspace) ?? {};
      return [2_499, 2_500].map((n) => shares?.get(subjectsOf(n)[0] ?? "") !== undefined);
    };
    // A workspace whose requests are refused is forgotten at once.
    assert.deepEqual(fill("ws_1", 0), [!isRefused, false]);
    if (!isRefused) {
      replica.settle("ws_1 0", 1);
      replica.receive(1, { state: "ended" });
    }
    isRefused = false;
    assert.deepEqual(fill("ws_2", 1), [true, false]);
  }
});
