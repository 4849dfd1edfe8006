import assert from "node:assert/strict";
import { test } from "vitest";
import { newGenerationId } from "../../src/contract/generation-id.ts";
import { Trace } from "../../src/engine/trace.ts";
import { findRunning, type Look } from "../../src/runs/running.ts";

/** Carries messages between processes, as Postgres does. */
function openBus() {
  const handlers: [channel: string, handle: (payload: string) => void][] = [];
  const sent: string[] = [];
  const notifications = {
    listen: (channel: string, handle: (payload: string) => void) => void handlers.push([channel, handle]),
    async notify(channel: string, payload: string) {
      sent.push(payload);
      for (const [of, handle] of handlers) if (of === channel) handle(payload);
    },
  };
  return { notifications, sent };
}

const NOW = Date.UTC(2026, 10, 20, 12);

function lookOf(id: string, workspaceId = "ws_1", tags: Record<string, string> = {}): Look {
  const trace = new Trace();
  trace.add({ id: 1, kind: "answer", role: "fast" });
  const facts = { id, requestId: "req_1", keyId: "key_1", streamed: true, shape: "text", effort: "auto", level: "low" };
  const run = { trace, reasons: [], calls: [], count: 0, notices: [] };
  return {
    workspaceId,
    look: () => ({ facts: { ...facts, inputTokens: 7, latencyMs: 5, tags } as const, run }) as never,
  };
}

const several = async () => true;
const alone = async () => false;

test("finds the requests of all processes, newest first, and only those of the workspace", async () => {
  const { notifications } = openBus();
  const [first, second, third] = [0, 1, 2].map((at) => newGenerationId(NOW + at)) as [string, string, string];
  const here = new Map([[second, lookOf(second)]]);
  const there = new Map([
    [first, lookOf(first)],
    [third, lookOf(third, "ws_2")],
  ]);
  const ours = findRunning(here, notifications, several);
  findRunning(there, notifications, several);
  const listed = await ours.list("ws_1");
  assert.deepEqual(
    listed.map(({ id, record }) => [id, record]),
    [
      [second, undefined],
      [first, undefined],
    ],
  );
  assert.equal((await ours.find("ws_1", first))?.record?.s.length, 1);
  assert.equal(await ours.find("ws_1", third), undefined, "of another workspace");
  for (const garbage of ["", "{", "null", "7", '{"from":1}']) {
    for (const channel of ["running_ask", "running_reply"]) await notifications.notify(channel, garbage);
  }
});

test("sends nothing when no other process runs, or the request is its own", async () => {
  const { notifications, sent } = openBus();
  const id = newGenerationId(NOW);
  const here = new Map([[id, lookOf(id)]]);
  assert.equal((await findRunning(here, notifications, alone).list("ws_1")).length, 1);
  assert.equal((await findRunning(here, notifications, several).find("ws_1", id))?.id, id);
  assert.deepEqual(sent, []);
});

test("answers with the newest requests that fit into a message", async () => {
  const { notifications, sent } = openBus();
  const there = new Map(
    Array.from({ length: 3_000 }, (_, at) => newGenerationId(NOW + at)).map((id) => [id, lookOf(id)]),
  );
  const ours = findRunning(new Map(), notifications, several);
  findRunning(there, notifications, several);
  const listed = await ours.list("ws_1");
  assert.ok(listed.length >= 25, `${listed.length}`);
  assert.ok(sent.every((payload) => Buffer.byteLength(payload) < 8_000));
  assert.equal(listed[0]?.id, [...there.keys()].at(-1));

  sent.length = 0;
  const id = newGenerationId(NOW);
  const long = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`tag_${at}`, "音".repeat(256)]));
  there.clear();
  there.set(id, lookOf(id, "ws_1", long));
  assert.equal((await ours.find("ws_1", id))?.tags, undefined);
  assert.equal((await ours.list("ws_1")).length, 1);
  assert.ok(sent.every((payload) => Buffer.byteLength(payload) < 8_000));
});
