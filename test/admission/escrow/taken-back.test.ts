import assert from "node:assert/strict";
import { test } from "vitest";
import { NOTHING } from "../../../src/admission/escrow/exchange.ts";
import { done, named, Replica, running } from "../../helpers/replica.ts";

const AGAIN = { state: "again" } as const;

/** A replica of q0 and q1 whose database has admitted a request that was refused, because its answer came late. */
function refusedLate(of: { key?: string; subjects?: readonly string[] }): Replica {
  const replica = running();
  replica.tell({ type: "request", workspace: "ws_1", requestId: "q2", hold: 5_000, input: 1, ...of }, 2);
  assert.deepEqual(named(replica.fail(3)), ["refuse q2"]);
  replica.tell({ type: "tick" }, 13);
  assert.deepEqual(replica.receive(13, done([{}])), []);
  return replica;
}

test("frees the key or the caps of a request that was refused and admitted, and nothing of another one", () => {
  const freed = (of: { key?: string; subjects?: readonly string[] }) => refusedLate(of).item.freed;
  assert.deepEqual(freed({ key: "k" }), [{ requestId: "q2", key: "k" }]);
  assert.deepEqual(freed({ subjects: ["user:u"] }), [{ requestId: "q2", key: undefined }]);
  assert.deepEqual(freed({}), []);
});

test("frees again at once what an item has freed that changed nothing", () => {
  const replica = refusedLate({ key: "k" });
  for (const now of [14, 15]) {
    assert.deepEqual(replica.receive(now, AGAIN), []);
    assert.deepEqual(replica.item.freed, [{ requestId: "q2", key: "k" }], `at ${now}`);
  }
  replica.receive(16, done());
  replica.tell({ type: "callBack", workspace: "ws_1" }, 17);
  assert.deepEqual(
    replica.items.flatMap(({ freed }) => freed),
    [],
  );
});

test("reports again at once what an item has reported that changed nothing", () => {
  const replica = running();
  assert.deepEqual(named(replica.request("q2", 2)), ["admit q2"]);
  replica.tell({ type: "callBack", workspace: "ws_1" }, 3);
  assert.deepEqual([replica.item.keep, replica.item.used], [NOTHING, { requests: 1, input: 1 }]);
  replica.receive(4, undefined);
  assert.deepEqual(replica.item.used, { requests: 1, input: 1 });
});

test("asks again for the other requests of an item of which the database rejects one", () => {
  const replica = new Replica();
  for (const id of ["q0", "q1", "q2"]) replica.request(id, 0);
  replica.receive(0, done([{}]));
  const rejected = replica.receive(1, { state: "rejected", requestIds: ["q1"] });
  assert.deepEqual(rejected, [{ type: "deny", requestId: "q1", isInvalid: true }]);
  assert.deepEqual(
    replica.item.asks.map(({ requestId }) => requestId),
    ["q2"],
  );
});

test("holds for running requests what it did when the database rejects a settlement of another grant", () => {
  const replica = running();
  const post = { requestId: "r", charge: 5, output: 1, row: {}, admittedBy: "r0" };
  replica.tell({ type: "recover", workspace: "ws_1", post }, 2);
  assert.deepEqual(named(replica.receive(3, { state: "rejected", requestIds: ["r"] })), ["deny r"]);
  assert.deepEqual(replica.items, []);
  replica.tell({ type: "callBack", workspace: "ws_1" }, 4);
  assert.deepEqual(replica.item.held, { credit: 20, running: 2 });
});

test("denies once what the database rejects while it is written to the journal", () => {
  const replica = running();
  replica.settle("q0", 2);
  replica.request("q2", 2, { workspace: "ws_2" });
  assert.deepEqual(named(replica.fail(3)), ["journal", "refuse q2"]);
  assert.deepEqual(named(replica.receive(4, { state: "rejected", requestIds: ["q0"] })), ["deny q0"]);
  for (const isWritten of [true, false])
    assert.deepEqual(replica.tell({ type: "journaled", requestIds: ["q0"], isWritten }, 5), []);
});

test("sends the settlements of a locked workspace again as they were, after 500 ms", () => {
  const replica = running();
  replica.settle("q0", 2);
  const { item } = replica;
  replica.tell({ type: "tick" }, 3);
  assert.deepEqual([replica.sent.append, replica.sent.exchange], [[item], []]);
  replica.receive(3, { state: "locked" });
  replica.tell({ type: "tick" }, 502);
  assert.deepEqual(replica.items, []);
  replica.tell({ type: "tick" }, 503);
  assert.deepEqual([replica.sent.append, replica.sent.exchange], [[item], []]);
});
