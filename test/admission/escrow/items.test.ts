import assert from "node:assert/strict";
import { test } from "vitest";
import { NOTHING } from "../../../src/admission/escrow/exchange.ts";
import { done, named, PLENTY, Replica, running } from "../../helpers/replica.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;

test("takes at most 256 requests and 256 settlements into an item, and closes the grant with the last ones", () => {
  const replica = new Replica();
  const ids = Array.from({ length: 300 }, (_, i) => `q${i}`);
  replica.request("first", 0);
  for (const id of ids) replica.request(id, 0);
  assert.equal(replica.item.asks.length, 1);
  replica.receive(0, done([{}]));
  for (const size of [256, 44]) {
    assert.equal(replica.item.asks.length, size);
    replica.receive(0, done(replica.item.asks.map(() => ({}))));
  }
  replica.tell({ type: "callBack", workspace: "ws_1" }, 1);
  if (replica.items.length > 0) replica.receive(1, done());
  const posts = ["first", ...ids].map((requestId) => ({ requestId, charge: 1, output: 1, row: {} }));
  replica.tell({ type: "settle", posts }, 2);
  assert.deepEqual([replica.item.posts.length, replica.item.close, replica.item.held.credit], [256, false, 45]);
  replica.receive(2, done());
  assert.deepEqual([replica.item.posts.length, replica.item.close, replica.item.held.credit], [45, true, 0]);
});

test("settles requests of many workspaces with one exchange", () => {
  const replica = new Replica();
  const names = Array.from({ length: 300 }, (_, i) => `ws_${i}`);
  for (const name of names) replica.request(name, 0, { workspace: name });
  let answered = 0;
  for (const size of [1, 256, 43]) {
    assert.equal(replica.items.length, size);
    answered += size;
    replica.receive(0, ...replica.items.map(() => done([{}])));
  }
  assert.equal(answered, 300);
  const posts = names.map((requestId) => ({ requestId, charge: 1, output: 1, row: {} }));
  replica.tell({ type: "settle", posts }, 1);
  assert.equal(replica.items.length, 256);
});

test("takes no further item into an exchange with 512 requests and settlements", () => {
  const replica = new Replica();
  replica.request("first", 0, { workspace: "ws_first" });
  for (const name of ["ws_1", "ws_2", "ws_3"])
    for (let i = 0; i < 256; i++) replica.request(`${name}_${i}`, 0, { workspace: name });
  replica.receive(0, done([{}]));
  assert.deepEqual(
    replica.items.map(({ workspace }) => workspace),
    ["ws_1", "ws_2"],
  );
  const ids: string[] = [];
  while (replica.items.length > 0) {
    ids.push(...replica.items.flatMap(({ asks }) => asks.map(({ requestId }) => requestId)));
    replica.receive(0, ...replica.items.map(({ asks }) => done(asks.map(() => ({})))));
  }
  const posts = ids.map((requestId) => ({ requestId, charge: 1, output: 1, row: {} }));
  replica.tell({ type: "settle", posts }, 1);
  assert.deepEqual(
    replica.items.map((item) => item.posts.length),
    [256, 256],
  );
});

test("opens a grant with an item that continues, keeps and frees nothing", () => {
  const replica = new Replica();
  replica.request("q0", 5);
  const { asks, ...item } = replica.item;
  assert.deepEqual(
    asks.map(({ requestId, hold, input }) => [requestId, hold, input]),
    [["q0", 10, 1]],
  );
  const none = { minute: 0, keep: NOTHING, held: { credit: 0, running: 0 }, used: { requests: 0, input: 0 } };
  assert.deepEqual(item, {
    ...{ workspace: "ws_1", mode: "exchange", seq: 1, grant: 0, after: 0, ...none, posts: [], freed: [] },
    ...{ subjects: [], spare: { n: 0, credit: 0, input: 0, output: 1 }, close: false },
  });
});

test("tells the database after two seconds what it has admitted, counted from the first request", () => {
  const replica = running();
  for (const [i, now] of [100, 900, 1_700].entries())
    assert.deepEqual(named(replica.request(`r${i}`, now)), [`admit r${i}`]);
  replica.tell({ type: "tick" }, 2_099);
  assert.deepEqual(replica.items, []);
  replica.tell({ type: "tick" }, 2_100);
  assert.deepEqual(replica.item.used, { requests: 3, input: 3 });
});

test("returns idle headroom while a request runs, once, and nothing where there is no limit", () => {
  const replica = running();
  replica.tell({ type: "tick" }, 2_000);
  assert.deepEqual(replica.items, []);
  replica.tell({ type: "tick" }, 2_001);
  assert.deepEqual([replica.item.keep, replica.item.held.running, replica.item.close], [NOTHING, 2, false]);
  replica.receive(2_001, done());
  replica.tell({ type: "tick" }, 4_500);
  assert.deepEqual(replica.items, []);
  const limitless = new Replica();
  limitless.request("q0", 0);
  limitless.receive(0, done([{}], { running: LIMITLESS, requests: LIMITLESS, input: LIMITLESS, output: LIMITLESS }));
  limitless.tell({ type: "tick" }, 4_000);
  assert.deepEqual(limitless.items, []);
  // Another replica may need it, because a limit is new.
  limitless.tell({ type: "callBack", workspace: "ws_1" }, 4_001);
  assert.deepEqual(limitless.item.keep, NOTHING);
  limitless.receive(4_001, done());
  limitless.tell({ type: "callBack", workspace: "ws_1" }, 4_002);
  assert.deepEqual(limitless.items, []);
});

test("keeps no requests and tokens after the end of their minute", () => {
  const replica = running();
  for (let now = 7_000; now < 30_000; now += 7_000) replica.tell({ type: "beat", sentAt: now, isDeaf: false }, now);
  for (const [i, now] of [29_990, 29_995].entries()) {
    replica.tell({ type: "beat", sentAt: now, isDeaf: false }, now);
    replica.request(`r${i}`, now, { hold: 1 });
    if (replica.items.length > 0) replica.receive(now, { ...done([{}], PLENTY), msLeft: 30_001 - now } as never);
  }
  replica.settle("q0", 30_001);
  const { requests, input, output, running: concurrent } = replica.item.keep;
  assert.deepEqual([requests, input, output, concurrent > 0], [0, 0, 0, true]);
});

test("uses nothing of the minute after the database has said that it is over", () => {
  const replica = running();
  replica.request("q2", 2);
  replica.request("q3", 2, { key: "k" });
  assert.ok(replica.item.keep.requests > 0);
  replica.receive(3, { state: "again" });
  const { requests, input, output } = replica.item.keep;
  assert.deepEqual([requests, input, output], [0, 0, 0]);
});

test("counts what runs against a limit that is new", () => {
  const replica = new Replica();
  replica.request("q0", 0);
  replica.receive(0, done([{}], { ...PLENTY, running: LIMITLESS, requests: LIMITLESS, input: LIMITLESS }));
  replica.request("q1", 1, { key: "k" });
  for (const id of ["q2", "q3"]) replica.request(id, 1);
  // q2 and q3 are not admitted after q1 was sent without headroom: nothing is kept for one request.
  replica.receive(2, done([{}], { ...PLENTY, running: LIMITLESS, requests: LIMITLESS, input: LIMITLESS }));
  const asked = replica.item.asks.map(({ requestId }) => requestId);
  assert.deepEqual(asked, ["q2", "q3"]);
  for (const id of ["q4", "q5"]) assert.deepEqual(named(replica.request(id, 3)), [`admit ${id}`]);
  // Of three requests, two were admitted meanwhile, and two that were asked for run, too.
  replica.receive(4, done([{}, {}], { ...PLENTY, credit: 0, running: 3, requests: 3, input: 3 }));
  assert.deepEqual(named(replica.request("q6", 5)), ["admit q6"]);
  assert.deepEqual(named(replica.request("q7", 5)), []);
  assert.equal(replica.item.asks.length, 1);
});

test("does not ask again for a request that was refused while the database was away", () => {
  const replica = running();
  replica.request("q2", 2, { key: "k" });
  assert.deepEqual(named(replica.fail(3)), ["refuse q2"]);
  replica.tell({ type: "tick" }, 13);
  assert.deepEqual(named(replica.receive(13, { state: "again" })), []);
  assert.deepEqual(
    replica.items.flatMap(({ asks }) => asks),
    [],
  );
});

test("leaves a grant as it is that it knows, or that it opens just now", () => {
  const replica = running();
  replica.tell({ type: "find", workspace: "ws_1", grant: 9 }, 2);
  assert.deepEqual(replica.items, []);
  replica.request("q2", 3, { workspace: "ws_2" });
  replica.tell({ type: "find", workspace: "ws_2", grant: 9 }, 3);
  replica.receive(4, done([{}]));
  assert.deepEqual(replica.items, []);
});

test("still returns something while any workspace has headroom or a statement under way", () => {
  const replica = new Replica();
  replica.request("q0", 0);
  replica.receive(0, done([{}]));
  assert.equal(replica.escrow.isReturning, false);
  replica.request("q1", 0, { workspace: "ws_2" });
  assert.equal(replica.escrow.isReturning, true);
  replica.receive(0, done([{}]));
  assert.equal(replica.escrow.isReturning, false);
  const idle = running();
  for (const id of ["q0", "q1"]) {
    idle.settle(id, 2);
    idle.receive(2, { state: "appended" });
  }
  assert.deepEqual([idle.items, idle.escrow.isReturning], [[], true]);
});

test("forgets the workspace that was not used for longest when it remembers 10,000", () => {
  const replica = new Replica();
  const use = (workspace: string, now: number): string => {
    replica.request(`${workspace} ${now}`, now, { workspace });
    replica.receive(now, done([{}]));
    replica.settle(`${workspace} ${now}`, now);
    const { mode } = replica.item;
    replica.receive(now, mode === "append" ? { state: "appended" } : done());
    return mode;
  };
  const forget = (now: number) => {
    replica.tell({ type: "beat", sentAt: now, isDeaf: false }, now);
    replica.tell({ type: "tick" }, now);
    if (replica.items.length > 0) replica.receive(now, ...replica.items.map(() => done()));
  };
  use("ws_0", 0);
  forget(2_500);
  forget(9_000);
  for (let i = 1; i < 10_000; i++) use(`ws_${i}`, 9_000);
  // Used a second time, ws_0 is one of the last.
  for (const name of ["ws_0", "ws_new"]) use(name, 11_000);
  for (const now of [11_001, 13_001]) forget(now);
  assert.equal(replica.escrow.grants.size, 0);
  // A second request within ten seconds shows that a workspace is used now and then, so its grant stays.
  assert.deepEqual(
    ["ws_0", "ws_1", "ws_2"].map((name) => use(name, 13_600)),
    ["append", "exchange", "append"],
  );
});

// With the time, the item of a settlement cannot be appended any more: its minute has ended, or headroom is idle.
test("exchanges a settlement that was to be appended when the statement before it is answered", () => {
  const replica = running();
  replica.request("x0", 1, { workspace: "ws_2" });
  replica.receive(1, done([{}]));
  replica.request("x1", 2, { workspace: "ws_2" });
  replica.receive(2, done([{}], PLENTY));
  replica.settle("q0", 3);
  replica.settle("x0", 4);
  const postsOf = (items: readonly { posts: readonly { requestId: string }[] }[]) =>
    items.flatMap(({ posts }) => posts.map(({ requestId }) => requestId));
  assert.deepEqual([postsOf(replica.sent.append), postsOf(replica.sent.exchange)], [["q0"], []]);
  replica.receive(30_010, { state: "appended" });
  assert.ok(postsOf(replica.sent.exchange).includes("x0"));
});
