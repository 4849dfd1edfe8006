import assert from "node:assert/strict";
import { test } from "vitest";
import { CallLimit, type Slot, shareConnections } from "../../src/models/call-limit.ts";
import { call } from "./fake-model.ts";

function fixture(max: number, connections = 1_000) {
  let now = 0;
  const limit = new CallLimit({ max, connections: shareConnections(connections), clock: () => now });
  const enter = (workspace: string, more = {}) => limit.enter(call({ requester: { workspace }, ...more }), 60_000);
  return {
    limit,
    enter,
    /** Enters calls that need no wait. */
    run(workspace: string, count: number): Slot[] {
      return Array.from({ length: count }, () => {
        const slot = enter(workspace);
        assert.ok(!(slot instanceof Promise), "the call waits");
        return slot;
      });
    },
    tick() {
      now += 1;
    },
  };
}

function end(slots: readonly Slot[]): void {
  for (const slot of slots) slot[Symbol.dispose]();
}

test("falls by 30 % at a rejection, once for all calls that had begun before", () => {
  const { limit, run, tick } = fixture(1_000);
  const slots = run("a", 100);
  tick();
  for (const slot of slots) slot.reject();
  assert.equal(limit.size.limit, 140, "70 % of twice the running calls");
  run("a", 1)[0]?.reject();
  assert.equal(limit.size.limit, 98);
  tick();
  end(slots);
  for (let i = 0; i < 50; i++) {
    const [slot] = run("a", 1);
    slot?.reject();
    end([...(slot ? [slot] : [])]);
    tick();
  }
  assert.equal(limit.size.limit, 5);
});

test("is not lowered far by one rejection while few calls run", () => {
  const { limit, run } = fixture(1_000);
  run("a", 1)[0]?.reject();
  assert.equal(limit.size.limit, 44);
});

test("rises by its square root for each round of accepted calls, if half of it is used", () => {
  const { limit, run, tick } = fixture(1_000);
  run("a", 71)[0]?.reject();
  tick();
  assert.equal(limit.size.limit, 99);
  for (const slot of run("b", 1)) for (let i = 0; i < 99; i++) slot.accept();
  assert.equal(limit.size.limit, 109);
  for (const slot of run("b", 1)) for (let i = 0; i < 100_000; i++) slot.accept();
  assert.equal(limit.size.limit, 146, "half of it is used");
});

test("rises to its maximum and not beyond", () => {
  const { limit, run } = fixture(50);
  const slots = run("a", 40);
  slots[0]?.reject();
  assert.equal(limit.size.limit, 35);
  for (let i = 0; i < 1_000; i++) slots[1]?.accept();
  assert.equal(limit.size.limit, 50);
});

test("is not lowered by rejections of one workspace while another has calls", () => {
  const { limit, run, tick } = fixture(100);
  const quiet = run("quiet", 1);
  const [loud] = run("loud", 1);
  for (let i = 0; i < 10; i++) {
    loud?.reject();
    tick();
  }
  assert.equal(limit.size.limit, 100);
  quiet[0]?.reject();
  assert.equal(limit.size.limit, 44);
});

test("leaves a part to other workspaces, and gives them the next free places", async () => {
  const { limit, enter, run } = fixture(10);
  const slots = run("a", 8);
  const waiting = enter("a");
  assert.ok(waiting instanceof Promise);
  assert.deepEqual(limit.size, { limit: 10, running: 8, waiting: 1 });
  end(run("b", 1));
  end(slots);
  end([await waiting]);
  assert.deepEqual(limit.size, { limit: 10, running: 0, waiting: 0 });
});

test("refuses a call that waits for longer than half of its time, and one beyond the queue", async () => {
  const { enter, run } = fixture(1);
  const slots = run("a", 1);
  const late = { name: "ModelError", kind: "not_asked", refusal: "late", retryAfterMs: 1_000, blamesModel: false };
  await assert.rejects(async () => enter("b", { endsAt: performance.now() - 1 }), late);
  await assert.rejects(async () => enter("b", { endsAt: performance.now() + 20 }), late);
  const waiting = Array.from({ length: 100 }, () => enter("b"));
  await assert.rejects(async () => enter("b"), { kind: "not_asked", refusal: "full" });
  end(slots);
  for (const each of waiting) end([await each]);
});

test("refuses a call at once when its workspace has its share of all connections", () => {
  const { limit, enter, run } = fixture(100, 10);
  const slots = run("a", 8);
  assert.throws(() => enter("a"), { kind: "not_asked", refusal: "connections" });
  assert.equal(limit.size.running, 8);
  run("b", 1);
  end(slots);
  run("a", 7);
});

test("ends the wait of a call that aborts", async () => {
  const { enter, run } = fixture(1);
  run("a", 1);
  const gone = new Error("gone");
  const abort = new AbortController();
  const waiting = enter("b", { signal: abort.signal });
  abort.abort(gone);
  await assert.rejects(async () => waiting, gone);
});
