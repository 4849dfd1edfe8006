import assert from "node:assert/strict";
import { test } from "vitest";
import { Escrow } from "../../../src/admission/escrow/escrow.ts";
import type { Command } from "../../../src/admission/escrow/events.ts";
import { type Item, NOTHING, type Reply, type Verdict } from "../../../src/admission/escrow/exchange.ts";

test("asks for a request although two other workspaces always have more requests than an exchange takes", () => {
  const escrow = new Escrow("r1");
  let count = 0;
  const request = (workspace: string) =>
    escrow.handle({ type: "request", workspace, requestId: `req_${count++}`, hold: 1, input: 1 }, 0);
  const flood = () => ["ws_1", "ws_2"].flatMap((workspace) => Array.from({ length: 600 }, () => request(workspace)));
  escrow.handle({ type: "beat", sentAt: 0, isDeaf: false }, 0);
  let items = itemsOf(flood().flat());
  request("ws_3");
  for (let i = 0; i < 4 && !items.some(({ workspace }) => workspace === "ws_3"); i++) {
    flood();
    items = itemsOf(escrow.handle({ type: "receive", mode: "exchange", replies: items.map(refuseAll) }, 0));
  }
  assert.ok(items.some(({ workspace }) => workspace === "ws_3"));
});

test("does not continue a grant that it has found in the database, because no request runs under it", () => {
  const escrow = new Escrow("r1");
  escrow.handle({ type: "beat", sentAt: 0, isDeaf: false }, 0);
  escrow.handle({ type: "request", workspace: "ws_1", requestId: "req_1", hold: 1, input: 1 }, 0);
  escrow.handle({ type: "find", workspace: "ws_2", grant: 7 }, 0);
  escrow.handle({ type: "request", workspace: "ws_2", requestId: "req_2", hold: 1, input: 1 }, 0);
  const ended = escrow.handle({ type: "receive", mode: "exchange", replies: [{ state: "ended" }] }, 0);
  const sent = itemsOf(ended).map(({ workspace, grant, asks }) => [workspace, grant, asks.length]);
  assert.deepEqual(sent.sort(), [
    ["ws_1", 0, 1],
    ["ws_2", 0, 1],
  ]);
});

test("closes a grant that it has found in the database at once", () => {
  const escrow = new Escrow("r1");
  escrow.handle({ type: "beat", sentAt: 0, isDeaf: false }, 0);
  const request = { type: "request", workspace: "ws_1", requestId: "req_1", hold: 1, input: 1 } as const;
  const items = itemsOf(escrow.handle(request, 0));
  escrow.handle({ type: "receive", mode: "exchange", replies: items.map(admitAll) }, 0);
  const post = { requestId: "req_1", charge: 1, output: 1, row: {} };
  const posting = itemsOf(escrow.handle({ type: "settle", posts: [post] }, 0));
  escrow.handle({ type: "receive", mode: "exchange", replies: posting.map(admitAll) }, 0);
  const found = itemsOf(escrow.handle({ type: "find", workspace: "ws_1", grant: 7 }, 1));
  assert.deepEqual(
    found.map(({ workspace, close }) => [workspace, close]),
    [["ws_1", true]],
  );
});

test("asks for a minute of requests that come every five seconds, and returns the rest after 15 s", () => {
  const { request, settle, tick } = slowWorkspace();
  const sent = Array.from({ length: 11 }, (_, i) => {
    const now = i * 5_000;
    const items = [...request(`req_${i}`, now), ...settle(`req_${i}`, now + 50)];
    // The grant is looked at every 250 ms.
    for (let at = now + 250; at < now + 5_000; at += 250) items.push(...tick(at));
    return items.map(({ mode, asks, posts }) =>
      mode === "append" ? "appends" : asks.length > 0 ? "asks" : posts.length > 0 ? "posts" : "takes",
    );
  });
  assert.deepEqual(sent, [["asks", "posts"], ["asks", "appends", "takes"], ...Array(9).fill(["appends"])]);
  for (let at = 55_000; at < 65_000; at += 250) assert.deepEqual(tick(at), []);
  assert.deepEqual(
    tick(65_000).map(({ close }) => close),
    [true],
  );
});

test("takes headroom of a slow workspace some time after little is left, and not with a settlement", () => {
  const { request, settle, tick } = slowWorkspace();
  const send = (i: number) => {
    const now = i * 3_000;
    return [...request(`req_${i}`, now), ...settle(`req_${i}`, now + 50)];
  };
  for (let i = 0; i < 2; i++) send(i);
  assert.equal(tick(3_250)[0]?.spare.n, 16);
  for (let i = 2; i < 15; i++)
    assert.deepEqual(
      send(i).map(({ mode }) => mode),
      ["append"],
    );
  const now = 14 * 3_000 + 50;
  assert.deepEqual(tick(now + 99), []);
  assert.deepEqual(
    tick(now + 100).map(({ posts, spare }) => [posts.length, spare.n]),
    [[0, 13]],
  );
  assert.deepEqual(tick(now + 500), []);
});

test("sends a request with the next exchange while many workspaces take headroom", () => {
  const { escrow, request, settle } = slowWorkspace();
  const names = Array.from({ length: 40 }, (_, i) => `ws_${i}`);
  for (const [i, at] of [0, 5_000].entries())
    for (const name of names) {
      request(`${name}_${i}`, at, name);
      settle(`${name}_${i}`, at + 1);
    }
  const first = itemsOf(escrow.handle({ type: "tick" }, 5_250));
  escrow.handle({ type: "request", workspace: "ws_new", requestId: "req_new", hold: 10, input: 1 }, 5_251);
  const second = itemsOf(escrow.handle({ type: "receive", mode: "exchange", replies: first.map(grantAll) }, 5_252));
  const third = itemsOf(escrow.handle({ type: "receive", mode: "exchange", replies: second.map(grantAll) }, 5_253));
  const asks = (items: readonly Item[]) => items.map((item) => item.asks.length).filter((count) => count > 0);
  assert.deepEqual([first.length, second.length, third.length], [16, 17, 8]);
  assert.deepEqual([asks(first), asks(second), asks(third)], [[], [1], []]);
});

test("appends a settlement while the exchange of another workspace is under way", () => {
  const { escrow, request, settle } = slowWorkspace();
  for (const [i, at] of [0, 1, 2].entries()) {
    request(`req_${i}`, at);
    if (i < 2) settle(`req_${i}`, at);
  }
  const exchange = escrow.handle({ type: "request", workspace: "ws_2", requestId: "req_new", hold: 10, input: 1 }, 3);
  assert.deepEqual(lanesOf(exchange), [["exchange", "ws_2"]]);
  const post = { requestId: "req_2", charge: 1, output: 1, row: {} };
  assert.deepEqual(lanesOf(escrow.handle({ type: "settle", posts: [post] }, 4)), [["append", "ws_1"]]);
  assert.deepEqual(lanesOf(escrow.handle({ type: "tick" }, 5)), []);
});

test("deducts the output tokens of answers that end while an exchange brings headroom for more", () => {
  const escrow = new Escrow("r1");
  const request = (requestId: string, key?: string) =>
    escrow.handle({ type: "request", workspace: "ws_1", requestId, hold: 1, input: 1, ...(key && { key }) }, 0);
  const receive = (output: number) => {
    const extra = { ...NOTHING, credit: 100, running: 10, requests: 10, input: 10, output };
    const reply = { ...replyOf([{}]), extra } as Reply;
    escrow.handle({ type: "receive", mode: "exchange", replies: [reply] }, 0);
  };
  escrow.handle({ type: "beat", sentAt: 0, isDeaf: false }, 0);
  request("req_1");
  receive(5);
  assert.deepEqual(
    request("req_2").map(({ type }) => type),
    ["admit"],
  );
  request("req_3", "key");
  escrow.handle({ type: "settle", posts: [{ requestId: "req_2", charge: 1, output: 20, row: {} }] }, 0);
  receive(10);
  // The settlement is under way. The request waits for its answer.
  assert.deepEqual(request("req_4"), []);
});

/** A replica that has all headroom it asks for, with a heartbeat before each event. */
function slowWorkspace() {
  const escrow = new Escrow("r1");
  const handle = (event: Parameters<Escrow["handle"]>[0], now: number) => {
    escrow.handle({ type: "beat", sentAt: now, isDeaf: false }, now);
    const sent = escrow.handle(event, now).filter((command) => command.type === "send");
    for (const { mode, items } of sent) escrow.handle({ type: "receive", mode, replies: items.map(grantAll) }, now);
    return itemsOf(sent);
  };
  return {
    escrow,
    request: (requestId: string, now: number, workspace = "ws_1") =>
      handle({ type: "request", workspace, requestId, hold: 10, input: 1 }, now),
    settle: (requestId: string, now: number) =>
      handle({ type: "settle", posts: [{ requestId, charge: 1, output: 1, row: {} }] }, now),
    tick: (now: number) => handle({ type: "tick" }, now),
  };
}

/** The reply with all spare headroom. Only credit and requests are limited. */
function grantAll({ asks, spare: { n, credit }, mode }: Item): Reply {
  if (mode === "append") return { state: "appended" };
  const [running, input, output] = Array(3).fill(Number.POSITIVE_INFINITY);
  const extra = { credit: n * credit, running, requests: n, input, output };
  return { ...replyOf(asks.map(() => ({}))), extra } as Reply;
}

function lanesOf(commands: readonly Command[]): readonly string[][] {
  return itemsOf(commands).map(({ mode, workspace }) => [mode, workspace]);
}

function itemsOf(commands: readonly Command[]): readonly Item[] {
  return commands.flatMap((command) => (command.type === "send" ? command.items : []));
}

function refuseAll({ asks }: Item): Reply {
  return replyOf(asks.map(() => ({ refusal: { refusal: "rate_limited" } })));
}

function admitAll({ asks }: Item): Reply {
  return replyOf(asks.map(() => ({})));
}

function replyOf(verdicts: readonly Verdict[]): Reply {
  const none = { grant: 1, charges: {}, extra: NOTHING, minute: 0, msLeft: 60_000, isOver: false };
  return { state: "done", verdicts, ...none };
}
