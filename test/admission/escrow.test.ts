import assert from "node:assert/strict";
import { test } from "vitest";
import { Escrow } from "../../src/admission/escrow/escrow.ts";
import type { Command } from "../../src/admission/escrow/events.ts";
import { type Item, NOTHING, type Reply, type Verdict } from "../../src/admission/escrow/exchange.ts";

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
    items = itemsOf(escrow.handle({ type: "receive", replies: items.map(refuseAll) }, 0));
  }
  assert.ok(items.some(({ workspace }) => workspace === "ws_3"));
});

test("does not continue a grant that it has found in the database, because no request runs under it", () => {
  const escrow = new Escrow("r1");
  escrow.handle({ type: "beat", sentAt: 0, isDeaf: false }, 0);
  escrow.handle({ type: "request", workspace: "ws_1", requestId: "req_1", hold: 1, input: 1 }, 0);
  escrow.handle({ type: "find", workspace: "ws_2", grant: 7 }, 0);
  escrow.handle({ type: "request", workspace: "ws_2", requestId: "req_2", hold: 1, input: 1 }, 0);
  const ended = escrow.handle({ type: "receive", replies: [{ state: "ended" }] }, 0);
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
  escrow.handle({ type: "receive", replies: items.map(admitAll) }, 0);
  const post = { requestId: "req_1", charge: 1, output: 1, row: {} };
  const posting = itemsOf(escrow.handle({ type: "settle", posts: [post] }, 0));
  escrow.handle({ type: "receive", replies: posting.map(admitAll) }, 0);
  const found = itemsOf(escrow.handle({ type: "find", workspace: "ws_1", grant: 7 }, 1));
  assert.deepEqual(
    found.map(({ workspace, close }) => [workspace, close]),
    [["ws_1", true]],
  );
});

test("asks for no headroom while a workspace has a request every five seconds, and returns it after 15 s", () => {
  const { request, settle, tick } = slowWorkspace();
  const asked = [0, 5_000, 10_000, 15_000, 20_000].map((now, i) => {
    const items = request(`req_${i}`, now);
    settle(`req_${i}`, now + 50);
    // The share is looked at every 250 ms.
    for (let at = now + 250; at < now + 5_000; at += 250) assert.deepEqual(tick(at), []);
    return items.flatMap(({ asks }) => asks).length;
  });
  assert.deepEqual(asked, [1, 1, 0, 0, 0]);
  for (let at = 25_000; at < 35_000; at += 250) assert.deepEqual(tick(at), []);
  assert.deepEqual(
    tick(35_000).map(({ close }) => close),
    [true],
  );
});

/** A replica that has all headroom it asks for, with a heartbeat before each event. */
function slowWorkspace() {
  const escrow = new Escrow("r1");
  const handle = (event: Parameters<Escrow["handle"]>[0], now: number) => {
    escrow.handle({ type: "beat", sentAt: now, isDeaf: false }, now);
    const items = itemsOf(escrow.handle(event, now));
    if (items.length > 0) escrow.handle({ type: "receive", replies: items.map(grantAll) }, now);
    return items;
  };
  return {
    request: (requestId: string, now: number) =>
      handle({ type: "request", workspace: "ws_1", requestId, hold: 10, input: 1 }, now),
    settle: (requestId: string, now: number) =>
      handle({ type: "settle", posts: [{ requestId, charge: 1, output: 1, row: {} }] }, now),
    tick: (now: number) => handle({ type: "tick" }, now),
  };
}

/** The reply with all spare headroom. */
function grantAll({ asks, spare: { n, credit } }: Item): Reply {
  const [running, requests, input, output] = Array(4).fill(Number.POSITIVE_INFINITY);
  const extra = { credit: n * credit, running, requests, input, output };
  return { ...replyOf(asks.map(() => ({}))), extra } as Reply;
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
