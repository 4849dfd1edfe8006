import assert from "node:assert/strict";
import { test } from "vitest";
import type { Command, Event } from "../../../src/admission/escrow/events.ts";
import { done, named, PLENTY, Replica, running } from "../../helpers/replica.ts";

const LOCKED = { state: "locked" } as const;

function journaled(requestIds: readonly string[], isWritten: boolean): Event {
  return { type: "journaled", requestIds, isWritten };
}

/** The requests whose settlements go to the journal. */
function toJournal(commands: readonly Command[]): string[] {
  return commands.flatMap((command) =>
    command.type === "journal" ? command.posts.map(({ requestId }) => `${command.workspace} ${requestId}`) : [],
  );
}

/** A replica that has sent the settlement of q0 and an ask for q2, and whose database does not answer. */
function away(): { replica: Replica; commands: Command[] } {
  const replica = running();
  replica.request("q2", 2, { key: "k" });
  replica.settle("q0", 2);
  const commands = replica.fail(3);
  return { replica, commands };
}

test("refuses what waits and writes settlements to the journal while the database is away", () => {
  const { replica, commands } = away();
  assert.deepEqual(named(commands), ["refuse q2", "journal"]);
  assert.deepEqual(toJournal(commands), ["ws_1 q0"]);
  // What fits is admitted, and nothing else is asked for.
  assert.deepEqual(named(replica.request("q3", 4)), ["admit q3"]);
  assert.deepEqual(named(replica.request("q4", 4, { hold: 5_000 })), ["refuse q4"]);
  assert.deepEqual(toJournal(replica.settle("q1", 4)), ["ws_1 q1"]);
  assert.deepEqual(replica.items, []);
});

test("writes each settlement to the journal once, and nothing where there is none", () => {
  const { replica } = away();
  replica.tell({ type: "tick" }, 13);
  assert.deepEqual(replica.fail(14), []);
  const idle = running();
  idle.request("q2", 2, { key: "k" });
  assert.deepEqual(named(idle.fail(3)), ["refuse q2"]);
});

test("sends the same items again, first after 10 ms and then after up to 500 ms", () => {
  const replica = running();
  replica.request("q2", 2, { key: "k" });
  const { item } = replica;
  let now = 2;
  for (const wait of [10, 20, 40, 80, 160, 320, 500, 500]) {
    replica.fail(now);
    assert.equal(replica.escrow.wakeAt, now + wait);
    replica.tell({ type: "tick" }, now + wait - 1);
    assert.deepEqual(replica.items, []);
    now += wait;
    replica.tell({ type: "tick" }, now);
    assert.equal(replica.item, item);
    assert.equal(replica.escrow.wakeAt, undefined);
  }
  // The request was refused. What the database gave it is returned, and its key is free.
  assert.deepEqual(replica.receive(now, done([{}])), []);
  const { freed, held, keep } = replica.item;
  assert.deepEqual([freed, held.running, keep.credit], [[{ requestId: "q2", key: "k" }], 2, 0]);
  replica.receive(now, done());
  assert.deepEqual(replica.items, []);
  replica.request("q3", now, { key: "l" });
  replica.fail(now);
  assert.equal(replica.escrow.wakeAt, now + 10);
});

test("frees no key of a refused request that the database has refused, too", () => {
  const { replica } = away();
  replica.tell({ type: "tick" }, 13);
  replica.receive(13, done([{ refusal: { refusal: "rate_limited" } }]));
  for (const { freed } of replica.items) assert.deepEqual(freed, []);
});

test("confirms a settlement when the journal has it, and removes it there when the database has it", () => {
  const { replica } = away();
  assert.deepEqual(replica.tell(journaled(["q0"], true), 4), [{ type: "confirm", requestId: "q0", charge: 5 }]);
  replica.tell({ type: "tick" }, 13);
  const answered = replica.receive(13, done([{ refusal: { refusal: "rate_limited" } }]));
  replica.receive(14, done());
  assert.deepEqual(named(answered), []);
  assert.deepEqual(replica.items, []);
});

test("confirms a settlement once when the database has it before the journal", () => {
  const replica = running();
  replica.settle("q0", 2);
  assert.deepEqual(toJournal(replica.fail(3)), ["ws_1 q0"]);
  replica.tell({ type: "tick" }, 13);
  assert.deepEqual(named(replica.receive(13, { state: "appended" })), ["unjournal q0", "confirm q0"]);
  assert.deepEqual(replica.tell(journaled(["q0"], true), 14), []);
  assert.deepEqual(replica.tell(journaled(["q0"], false), 14), []);
});

test("removes a settlement of the journal without a second confirmation", () => {
  const replica = running();
  replica.settle("q0", 2);
  replica.fail(3);
  replica.tell(journaled(["q0"], true), 4);
  replica.tell({ type: "tick" }, 13);
  assert.deepEqual(named(replica.receive(13, { state: "appended" })), ["unjournal q0"]);
});

test("denies a settlement that neither takes, and gives its charge and its key back", () => {
  const replica = new Replica();
  replica.request("q0", 0, { key: "k" });
  replica.receive(0, done([{}]));
  replica.request("q1", 1);
  replica.receive(1, done([{}], PLENTY));
  replica.request("q2", 2, { key: "l" });
  replica.fail(3);
  replica.settle("q0", 4);
  assert.deepEqual(named(replica.tell(journaled(["q0"], false), 5)), ["deny q0"]);
  replica.tell({ type: "tick" }, 13);
  replica.receive(13, done([{ refusal: { refusal: "rate_limited" } }]));
  const { posts, freed, held, keep } = replica.item;
  assert.deepEqual([posts, freed, held], [[], [{ requestId: "q0", key: "k" }], { credit: 10, running: 1 }]);
  assert.equal(keep.credit, 0);
});

test("drops a settlement that neither takes from the item in flight", () => {
  const replica = running();
  replica.settle("q0", 2);
  replica.fail(3);
  replica.tell(journaled(["q0"], false), 4);
  replica.tell({ type: "tick" }, 13);
  assert.deepEqual(replica.item.posts, []);
});

test("lets a locked workspace wait 500 ms, and up to 8 s when it stays locked", () => {
  const replica = running();
  replica.request("q2", 2, { key: "k" });
  const { item } = replica;
  let now = 2;
  for (const wait of [500, 1_000, 2_000, 4_000, 8_000, 8_000]) {
    assert.deepEqual(named(replica.receive(now, LOCKED)), now === 2 ? ["refuse q2"] : []);
    replica.tell({ type: "tick" }, now + wait - 1);
    assert.deepEqual(replica.items, []);
    now += wait;
    replica.tell({ type: "tick" }, now);
    assert.equal(replica.item, item);
  }
  replica.receive(now, done([{ refusal: { refusal: "rate_limited" } }]));
  replica.tell({ type: "beat", sentAt: now, isDeaf: false }, now);
  if (replica.items.length > 0) replica.receive(now, done());
  replica.request("q3", now, { key: "l" });
  replica.receive(now, LOCKED);
  replica.tell({ type: "tick" }, now + 499);
  assert.deepEqual(replica.items, []);
  replica.tell({ type: "tick" }, now + 500);
  assert.equal(replica.items.length, 1);
});

test("writes settlements of a locked workspace to the journal, and serves other workspaces", () => {
  const replica = running();
  replica.request("q2", 2, { key: "k" });
  replica.settle("q0", 2);
  assert.deepEqual(toJournal(replica.receive(3, LOCKED)), ["ws_1 q0"]);
  assert.deepEqual(toJournal(replica.settle("q1", 4)), ["ws_1 q1"]);
  assert.deepEqual(named(replica.request("q3", 4, { hold: 5_000 })), ["refuse q3"]);
  assert.deepEqual(named(replica.request("q4", 4)), ["admit q4"]);
  assert.deepEqual(named(replica.request("q5", 4, { workspace: "ws_2" })), []);
  assert.equal(replica.item.workspace, "ws_2");
});

test("posts a settlement of the journal under the grant that the replica that admitted it has had", () => {
  const replica = running();
  replica.settle("q0", 2);
  replica.fail(3);
  replica.tell({ type: "tick" }, 13);
  // The grant has ended. What is in the journal, or on its way there, has been delivered.
  assert.deepEqual(named(replica.receive(13, { state: "ended" })), []);
  const { grant, posts, mode, held } = replica.item;
  assert.deepEqual([grant, mode, held.credit], [0, "exchange", 0]);
  assert.deepEqual(
    posts.map(({ requestId, admittedBy }) => [requestId, admittedBy]),
    [["q0", "r1"]],
  );
  assert.deepEqual(replica.tell(journaled(["q0"], true), 14), [{ type: "confirm", requestId: "q0", charge: 5 }]);
  assert.deepEqual(named(replica.receive(15, done())), ["unjournal q0"]);
});

test("settles what an earlier process has left in the journal, under its grant", () => {
  const replica = new Replica();
  const post = { requestId: "q0", charge: 5, output: 1, row: {}, admittedBy: "r0" };
  replica.tell({ type: "recover", workspace: "ws_1", post }, 0);
  assert.deepEqual([replica.item.mode, replica.item.posts[0]?.admittedBy], ["exchange", "r0"]);
  // It is in the journal already.
  assert.deepEqual(replica.fail(1), []);
  replica.tell({ type: "tick" }, 11);
  assert.deepEqual(named(replica.receive(11, done())), ["unjournal q0"]);
});
