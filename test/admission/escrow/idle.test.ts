import assert from "node:assert/strict";
import { test } from "vitest";
import type { Headroom } from "../../../src/admission/escrow/exchange.ts";
import { done, named, PLENTY, Replica } from "../../helpers/replica.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;

/** Headroom of a workspace whose only bound is its credit. */
const CREDIT_ONLY: Omit<Headroom, "credit"> = {
  running: LIMITLESS,
  requests: LIMITLESS,
  input: LIMITLESS,
  output: LIMITLESS,
};

/** A replica with unused headroom of 40 workspaces, whose last request was admitted at 1. */
function idleReplica(): Replica {
  const replica = new Replica();
  const names = Array.from({ length: 40 }, (_, i) => `ws_${i}`);
  for (const workspace of names) replica.request(`${workspace} a`, 0, { workspace });
  while (replica.items.length > 0) replica.receive(0, ...replica.items.map(() => done([{}], PLENTY)));
  for (const workspace of names) replica.request(`${workspace} b`, 1, { workspace });
  const ids = names.flatMap((name) => [`${name} a`, `${name} b`]);
  replica.tell({ type: "settle", posts: ids.map((requestId) => ({ requestId, charge: 5, output: 1, row: {} })) }, 2);
  replica.receive(2, ...replica.items.map(() => ({ state: "appended" }) as const));
  return replica;
}

test("returns idle headroom of 16 workspaces with one exchange, and forgets none before its answer", () => {
  const replica = idleReplica();
  replica.tell({ type: "tick" }, 2_000);
  assert.deepEqual(replica.items, []);
  replica.tell({ type: "tick" }, 2_001);
  const { grants } = replica.escrow;
  for (const [count, left] of [
    [16, 40],
    [16, 24],
    [8, 8],
  ] as const) {
    assert.deepEqual([replica.items.length, grants.size], [count, left]);
    assert.ok(replica.items.every(({ close }) => close));
    replica.receive(2_002, ...replica.items.map(() => done()));
  }
  assert.equal(grants.size, 0);
});

test("returns idle headroom of 16 workspaces beside any number of requests", () => {
  const replica = idleReplica();
  for (let i = 0; i < 21; i++) replica.request(`new_${i}`, 2_001, { workspace: `new_${i}` });
  replica.tell({ type: "tick" }, 2_001);
  assert.equal(replica.items.length, 1);
  replica.receive(2_002, done([{}]));
  const asking = replica.items.filter(({ asks }) => asks.length > 0);
  assert.deepEqual([asking.length, replica.items.length], [20, 36]);
});

test("closes an idle grant under which nothing is left", () => {
  const replica = new Replica();
  for (const [i, id] of ["q0", "q1"].entries()) {
    replica.request(id, i);
    replica.receive(i, done([{}], CREDIT_ONLY));
  }
  for (const id of ["q0", "q1"]) {
    replica.settle(id, 2, 10);
    replica.receive(2, done([], CREDIT_ONLY));
  }
  replica.tell({ type: "tick" }, 2_001);
  assert.deepEqual([replica.item.keep.credit, replica.item.close], [0, true]);
});

test("admits across the end of the minute where no limit ends with it", () => {
  const replica = new Replica();
  replica.request("q0", 0);
  replica.receive(0, done([{}], { ...CREDIT_ONLY, credit: 1_000 }));
  for (let now = 7_000; now < 30_000; now += 7_000) replica.tell({ type: "beat", sentAt: now, isDeaf: false }, now);
  assert.deepEqual(named(replica.request("q1", 30_001)), ["admit q1"]);
});

test("opens no second grant beside a request that waits for the headroom of others", () => {
  const replica = new Replica();
  replica.request("q0", 5);
  replica.receive(5, done([{ refusal: { refusal: "rate_limited" }, calledBack: true }]));
  replica.receive(5, done());
  replica.request("q1", 10);
  replica.receive(10, done([{}]));
  if (replica.items.length > 0) replica.receive(10, done());
  replica.tell({ type: "tick" }, 15);
  const { asks, grant } = replica.item;
  assert.deepEqual([asks.map(({ requestId }) => requestId), grant], [["q0"], 7]);
});

test("forgets no workspace while an exchange is under way, because a request can come meanwhile", () => {
  const replica = new Replica();
  replica.request("q0", 0);
  replica.receive(0, done([{}]));
  replica.settle("q0", 1);
  replica.receive(1, done());
  replica.request("q1", 2_500, { workspace: "ws_2" });
  replica.tell({ type: "tick" }, 2_501);
  assert.equal(replica.escrow.grants.size, 2);
  replica.request("q2", 2_502);
  for (const now of [2_503, 2_504]) replica.receive(now, done([{}]));
  replica.request("q3", 2_505);
  assert.equal(replica.item.grant, 7);
});
