import assert from "node:assert/strict";
import { test } from "vitest";
import { Escrow } from "../../../src/admission/escrow/escrow.ts";
import type { Reply } from "../../../src/admission/escrow/exchange.ts";
import { NOTHING } from "../../../src/admission/escrow/exchange.ts";
import { done, named, PLENTY, Replica, running } from "../../helpers/replica.ts";

test("refuses requests before the first heartbeat, and from eight seconds after the last one", () => {
  const request = { type: "request", workspace: "ws_1", requestId: "q0", hold: 1, input: 1 } as const;
  const refusal = { type: "refuse", requestId: "q0", refusal: undefined };
  assert.deepEqual(new Escrow("r1").handle(request, 0), [refusal]);
  assert.deepEqual(named(running().request("q2", 7_999)), ["admit q2"]);
  assert.deepEqual(running().request("q0", 8_000), [refusal]);
});

test("confirms each grant after a gap of the heartbeats, before it is used again", () => {
  const replica = running();
  replica.tell({ type: "beat", sentAt: 7_999, isDeaf: false }, 7_999);
  assert.deepEqual(replica.items, []);
  const late = running();
  late.tell({ type: "beat", sentAt: 7_990, isDeaf: false }, 8_000);
  assert.deepEqual([late.item.keep, late.item.held.running], [NOTHING, 2]);
  // An earlier heartbeat that is answered later does not shorten the time.
  replica.tell({ type: "beat", sentAt: 100, isDeaf: false }, 8_001);
  assert.deepEqual(named(replica.request("q2", 15_998)), ["admit q2"]);
  assert.deepEqual(named(replica.request("q3", 15_999)), ["refuse q3"]);
});

test("charges at most the hold, and settles a request once", () => {
  const replica = running();
  replica.settle("q0", 2, 99);
  assert.equal(replica.item.posts[0]?.charge, 10);
  assert.deepEqual(named(replica.settle("q0", 3)), ["deny q0"]);
  assert.deepEqual(named(replica.settle("unknown", 3)), ["deny unknown"]);
});

test("posts with an exchange what has an idempotency key, and what follows the end of the minute", () => {
  const replica = new Replica();
  replica.request("q0", 0, { key: "k" });
  replica.receive(0, done([{}], PLENTY));
  replica.request("q1", 1);
  replica.request("q2", 1);
  assert.deepEqual(replica.items, []);
  replica.settle("q0", 2);
  assert.deepEqual([replica.item.mode, replica.item.posts.length], ["exchange", 1]);
  const beside = new Replica();
  beside.request("q0", 0, { key: "k" });
  beside.receive(0, done([{}], PLENTY));
  beside.request("q1", 1);
  const posts = ["q0", "q1"].map((requestId) => ({ requestId, charge: 5, output: 1, row: {} }));
  beside.tell({ type: "settle", posts }, 2);
  assert.deepEqual([beside.item.mode, beside.item.posts.length], ["exchange", 2]);
  replica.receive(2, done([], PLENTY));
  replica.settle("q1", 29_000);
  replica.receive(29_000, done());
  replica.tell({ type: "beat", sentAt: 29_990, isDeaf: false }, 29_990);
  replica.settle("q2", 30_002);
  assert.equal(replica.item.mode, "exchange");
});

test("asks again every 10 ms while others return headroom, for 100 ms", () => {
  const replica = new Replica();
  const refusal = { refusal: "rate_limited", limit: "held_credit" } as const;
  replica.request("q0", 5);
  let now = 5;
  for (; now < 105; now += 10) {
    assert.deepEqual(named(replica.receive(now, done([{ refusal, calledBack: true }]))), [], `at ${now}`);
    // It returns its own headroom, too.
    if (replica.items.length > 0) replica.receive(now, done());
    assert.equal(replica.escrow.wakeAt, now + 10);
    replica.tell({ type: "tick" }, now + 9);
    assert.deepEqual(replica.items, []);
    replica.tell({ type: "tick" }, now + 10);
    assert.equal(replica.item.asks.length, 1);
  }
  const answer = replica.receive(now, done([{ refusal, calledBack: true }]));
  assert.deepEqual(answer, [{ type: "refuse", requestId: "q0", refusal }]);
});

test("refuses at once where no other replica has headroom", () => {
  const replica = new Replica();
  replica.request("q0", 5);
  const refusal = { refusal: "insufficient_credit" } as const;
  assert.deepEqual(replica.receive(6, done([{ refusal }])), [{ type: "refuse", requestId: "q0", refusal }]);
});

test("tells a request that a cap allows only the effort low, and no other one", () => {
  const replica = new Replica();
  replica.request("q0", 0);
  const admitted = { type: "admit", requestId: "q0" };
  assert.deepEqual(replica.receive(0, done([{}], PLENTY)), [admitted]);
  assert.deepEqual(replica.request("q1", 1), [{ ...admitted, requestId: "q1" }]);
  replica.request("q2", 2, { hold: 5_000 });
  assert.deepEqual(replica.receive(2, done([{ low: true }])), [{ ...admitted, requestId: "q2", isLow: true }]);
});

test("answers with a response that was kept, and runs nothing", () => {
  const replica = new Replica();
  replica.request("q0", 0, { key: "k" });
  const replay = { type: "replay", requestId: "q0", response: "cmVz" };
  assert.deepEqual(replica.receive(1, done([{ response: "cmVz" }])), [replay]);
  assert.deepEqual(named(replica.settle("q0", 2)), ["deny q0"]);
});

test("a request does not overtake those of its workspace that wait for headroom", () => {
  const replica = running();
  replica.request("q2", 2, { hold: 5_000 });
  const refusal = { refusal: "rate_limited" } as const;
  replica.receive(3, done([{ refusal, calledBack: true }], PLENTY));
  replica.receive(3, done([], PLENTY));
  assert.deepEqual(replica.request("q3", 4), []);
});

test("confirms a settlement with what is charged", () => {
  const replica = running();
  replica.settle("q0", 2);
  assert.deepEqual(replica.receive(3, { state: "appended" }), [{ type: "confirm", requestId: "q0", charge: 5 }]);
  replica.tell({ type: "callBack", workspace: "ws_1" }, 4);
  replica.receive(4, done());
  replica.settle("q1", 5);
  const less = { ...done(), charges: { q1: 2 } } as Reply;
  assert.deepEqual(replica.receive(6, less), [{ type: "confirm", requestId: "q1", charge: 2 }]);
});

test("denies what the database refuses, and goes on without it", () => {
  const replica = running();
  replica.settle("q0", 2);
  const rejected = replica.receive(3, { state: "rejected", requestIds: ["q0"] });
  assert.deepEqual(rejected, [{ type: "deny", requestId: "q0", isInvalid: true }]);
  assert.deepEqual(
    replica.items.flatMap(({ posts }) => posts),
    [],
  );
  replica.request("q2", 3, { key: "k" });
  const asking = new Replica();
  asking.request("q0", 0);
  assert.deepEqual(named(asking.receive(1, { state: "rejected", requestIds: ["q0"] })), ["deny q0"]);
  assert.deepEqual(asking.items, []);
});

test("counts the requests of an item again that changed nothing", () => {
  for (const reply of [{ state: "again" } as const, undefined]) {
    const replica = running();
    for (const id of ["q2", "q3"]) replica.request(id, 2);
    replica.request("q4", 3, { key: "k" });
    assert.deepEqual(replica.item.used, { requests: 2, input: 2 });
    replica.request("q5", 4);
    replica.settle("q0", 4);
    replica.receive(5, reply);
    const { used, asks, posts, mode } = replica.item;
    assert.deepEqual([used, asks.length, posts.length, mode], [{ requests: 3, input: 3 }, 1, 1, "exchange"]);
  }
});

test("reports what was admitted when somebody asks, and only then", () => {
  const replica = running();
  const report = { type: "report", workspace: "ws_1" } as const;
  replica.tell(report, 2);
  assert.deepEqual([replica.items, replica.escrow.isReporting("ws_1")], [[], false]);
  replica.request("q2", 3);
  replica.tell(report, 4);
  assert.deepEqual(replica.item.used, { requests: 1, input: 1 });
  assert.equal(replica.escrow.isReporting("ws_1"), true);
  replica.receive(5, done());
  assert.equal(replica.escrow.isReporting("ws_1"), false);
  assert.equal(replica.escrow.isReporting("ws_2"), false);
  // Its first request waits for the statement of another workspace, so nothing was admitted.
  for (const workspace of ["ws_3", "ws_2"]) replica.request(workspace, 6, { workspace });
  assert.deepEqual([replica.escrow.isReporting("ws_3"), replica.escrow.isReporting("ws_2")], [true, false]);
});

test("returns what no request holds when it stops", () => {
  const replica = running();
  assert.equal(replica.escrow.isReturning, false);
  replica.tell({ type: "stop" }, 2);
  assert.deepEqual([replica.item.keep, replica.item.close, replica.escrow.isReturning], [NOTHING, false, true]);
  replica.receive(3, done());
  assert.equal(replica.escrow.isReturning, false);
  for (const id of ["q0", "q1"]) {
    replica.settle(id, 4);
    replica.receive(4, done());
  }
  assert.deepEqual([replica.items, replica.escrow.isReturning], [[], false]);
});

test("remembers nothing of a workspace for which nothing is reserved, after two seconds", () => {
  const replica = new Replica();
  replica.request("q0", 0);
  replica.receive(0, done([{}]));
  replica.settle("q0", 1);
  replica.receive(1, done());
  replica.tell({ type: "tick" }, 1_999);
  assert.equal(replica.escrow.grants.size, 1);
  replica.tell({ type: "tick" }, 2_000);
  assert.equal(replica.escrow.grants.size, 0);
});

test("ends with its grant what was not posted, and keeps the requests that wait", () => {
  const replica = running();
  replica.settle("q0", 2);
  replica.request("q2", 2, { hold: 5_000 });
  assert.deepEqual(named(replica.receive(3, { state: "ended" })), ["deny q0"]);
  const { grant, asks } = replica.item;
  assert.deepEqual([grant, asks.map(({ requestId }) => requestId)], [0, ["q2"]]);
  assert.deepEqual(named(replica.settle("q1", 4)), ["deny q1"]);
});
