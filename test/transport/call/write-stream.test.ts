import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerOptions, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { test, vi } from "vitest";
import {
  FinishReason,
  StepKind,
  StepRole,
  StreamGenerateResponse_DoneSchema,
  TraceStepSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../../../src/contract/failure.ts";
import type { Facts, GenerateEvent } from "../../../src/generate/request-context.ts";
import { writeStream } from "../../../src/transport/call/write-stream.ts";
import { EVENTS } from "../../../src/transport/rest/stream.ts";
import { codePoint } from "../../helpers/code-point.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { streamOf } from "../../helpers/services.ts";
import { until } from "../../helpers/until.ts";

const DONE: GenerateEvent = {
  type: "done",
  done: create(StreamGenerateResponse_DoneSchema, {
    id: "gen_1",
    requestId: "req_1",
    usage: { inputTokens: 2, outputTokens: 1, credits: 0.0006 },
    finishReason: FinishReason.STOP,
  }),
};

const LONG_TIMEOUTS = { headersMs: 60_000, keepAliveMs: 60_000, stallMs: 60_000 };

const MB = 1024 * 1024;

test("frames events byte by byte as specified", async (t) => {
  const step = create(TraceStepSchema, { id: 1, kind: StepKind.ANSWER, role: StepRole.FAST, startedMs: 1 });
  const { url } = await serve(t, async function* () {
    yield { type: "trace", step };
    yield { type: "delta", text: "Grüße" };
    yield { type: "delta", text: 'a\r\nb\u2028"c"\ud800' };
    yield DONE;
  });
  const raw = await openRaw(t, url);
  raw.send(head("GET", "/"));
  const { status, headers, body } = await raw.read();
  assert.equal(status, 200);
  const { "content-type": type, "cache-control": cache, "x-accel-buffering": buffering } = headers;
  assert.deepEqual([type, cache, buffering], ["text/event-stream", "no-store", "no"]);
  assert.equal(
    body,
    'event: trace\ndata: {"step":{"id":1,"kind":"answer","role":"fast","started_ms":1}}\n\n' +
      'event: delta\ndata: {"text":"Grüße"}\n\n' +
      'event: delta\ndata: {"text":"a\\r\\nb\u2028\\"c\\"\\ud800"}\n\n' +
      'event: done\ndata: {"id":"gen_1","request_id":"req_1",' +
      '"usage":{"input_tokens":2,"output_tokens":1,"cached_tokens":0,"credits":0.0006},' +
      '"finish_reason":"stop","notices":[]}\n\n',
  );
});

test("delivers any text unchanged", async (t) => {
  let text = "";
  const { url } = await serve(t, async function* () {
    yield { type: "delta", text };
  });
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: codePoint }), async (sent) => {
      text = sent;
      const body = await (await fetch(url)).text();
      assert.match(body, /^event: delta\ndata: [^\r\n]*\n\n$/);
      assert.equal(JSON.parse(body.slice(body.indexOf("{"))).text, sent);
    }),
    { numRuns: 25 },
  );
});

test("sends the headers with the first event or after headersMs, and throws an earlier failure", async (t) => {
  const first = Promise.withResolvers<void>();
  const failAfter = (trigger: Promise<void>) =>
    // biome-ignore lint/correctness/useYield: the stream fails before its first event
    async function* (): AsyncGenerator<GenerateEvent> {
      await trigger;
      throw new Failure("upstream_failed");
    };
  const early = await serve(t, failAfter(first.promise));
  const refused = fetch(early.url);
  first.resolve();
  assert.equal((await refused).status, 502);

  const later = Promise.withResolvers<void>();
  const late = await serve(t, failAfter(later.promise), { headersMs: 20 });
  const response = await fetch(late.url);
  assert.equal(response.status, 200);
  later.resolve();
  assert.match(await response.text(), /^event: error\ndata: \{"code":"upstream_failed",.*\}\n\n$/);
});

test("sends no headers before the admission, however long that takes", async (t) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  t.onTestFinished(() => void vi.useRealTimers());
  for (const [wait, status] of [
    [undefined, 402],
    [1_900, 402],
    [2_000, 200],
  ] as const) {
    const facts: Facts = {};
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    // biome-ignore lint/correctness/useYield: the stream fails before its first event
    const events = async function* (): AsyncGenerator<GenerateEvent> {
      begun.resolve();
      await ended.promise;
      throw new Failure("insufficient_credit");
    };
    const { url } = await serve(t, events, { headersMs: 2_000 }, facts);
    const response = fetch(url);
    await begun.promise;
    vi.advanceTimersByTime(9_000);
    if (wait !== undefined) {
      facts.admittedAt = performance.now();
      vi.advanceTimersByTime(wait);
    }
    if (status !== 200) ended.resolve();
    assert.equal((await response).status, status, `${wait}`);
    ended.resolve();
    await (await response).text();
  }
});

test("sends the headers at once after an open event, and a later failure as an event", async (t) => {
  const later = Promise.withResolvers<void>();
  const { url } = await serve(t, async function* () {
    yield { type: "open" };
    await later.promise;
    throw new Failure("upstream_failed");
  });
  // The headers arrive before the answer begins.
  const response = await fetch(url);
  assert.equal(response.status, 200);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.equal((await reader?.read())?.value, ": \n\n");
  later.resolve();
  assert.match((await reader?.read())?.value ?? "", /^event: error\ndata: \{"code":"upstream_failed",.*\}\n\n$/);
});

test("sends comments during silence once the headers are sent", async (t) => {
  const { url } = await serve(
    t,
    async function* () {
      await sleep(100);
      yield { type: "delta", text: "a" };
      await until(() => /a"\}\n\n(: \n\n){3}/.test(seen));
      yield DONE;
    },
    { keepAliveMs: 10 },
  );
  let seen = "";
  const raw = await openRaw(t, url);
  raw.socket.on("data", (text: string) => {
    // Removes the chunk sizes of the chunked encoding.
    seen += text.replace(/(^|\r\n)[0-9a-f]+\r\n|\r\n$/g, "");
  });
  raw.send(head("GET", "/"));
  const { body } = await raw.read();
  assert.match(body, /^event: delta\n.*\n\n(: \n\n){3,}event: done/);
});

test("generates events at the reader's pace, and ends the stream when the reader stalls", async (t) => {
  const { url, ...state } = await serve(t, endless, { stallMs: 200 });
  const raw = await openRaw(t, url);
  raw.send(head("GET", "/"));
  await raw.until("delta");
  raw.socket.pause();
  await until(() => state.ended());
  // Only what fits into the buffers of two sockets is generated.
  assert.ok(state.generated() < 64 * MB, `${state.generated()} bytes were generated`);
  assert.equal(state.outcome(), "left");
  assert.equal(await state.connections(), 0);
});

test("keeps a stream whose reader is slow but active", async (t) => {
  const { url, ...state } = await serve(
    t,
    async function* () {
      yield { type: "delta", text: "x".repeat(16 * MB) };
      yield DONE;
    },
    // Less than the 1.6 s that the reader takes, and ten times its pauses, because the machine may be busy.
    { stallMs: 1_000 },
  );
  const raw = await openRaw(t, url);
  let taken = 0;
  raw.socket.on("data", (chunk: string) => {
    taken += chunk.length;
    if (taken < MB) return;
    taken = 0;
    raw.socket.pause();
    setTimeout(() => raw.socket.resume(), 100);
  });
  raw.send(head("GET", "/"));
  await raw.read();
  assert.equal(state.outcome(), "ended");
});

test("goes on with an event that comes after the reader has caught up", async (t) => {
  const caughtUp = Promise.withResolvers<void>();
  const { url } = await serve(
    t,
    async function* () {
      yield { type: "delta", text: "x".repeat(12_000) };
      await caughtUp.promise;
      yield DONE;
    },
    { stallMs: 500 },
    { admittedAt: performance.now() },
    // The first event fills the buffer, and the last one does not.
    { highWaterMark: 8_192 },
  );
  const raw = await openRaw(t, url);
  raw.send(head("GET", "/"));
  await raw.until("}\n\n");
  caughtUp.resolve();
  assert.match((await raw.read()).body, /event: done/);
});

test("stops generating when the reader leaves", async (t) => {
  const { url, ...state } = await serve(t, async function* () {
    yield { type: "delta", text: "a" };
    yield* endless();
  });
  const raw = await openRaw(t, url);
  raw.send(head("GET", "/"));
  await raw.until("delta");
  raw.socket.pause();
  await until(() => state.generated() > MB);
  raw.socket.destroy();
  await until(() => state.ended());
  assert.equal(state.outcome(), "left");
});

test("ends a complete answer whose reader stalls", async (t) => {
  const { url, ...state } = await serve(
    t,
    async function* () {
      yield { type: "delta", text: "x".repeat(32 * MB) };
    },
    { stallMs: 200 },
  );
  const raw = await openRaw(t, url);
  raw.send(head("GET", "/"));
  await raw.until("delta");
  raw.socket.pause();
  await until(async () => (await state.connections()) === 0);
});

async function* endless(): AsyncGenerator<GenerateEvent> {
  const text = "x".repeat(MB);
  for (;;) yield { type: "delta", text };
}

/** Starts a server that answers every request with these events. */
async function serve(
  t: Lifetime,
  events: () => AsyncGenerator<GenerateEvent>,
  options: Partial<typeof LONG_TIMEOUTS> = {},
  facts: Facts = { admittedAt: performance.now() },
  settings: ServerOptions = {},
) {
  let generated = 0;
  let outcome: "ended" | "left" | undefined;
  const server = createServer(settings, async (request, response: ServerResponse) => {
    const connection = new AbortController();
    response.once("close", () => response.writableFinished || connection.abort());
    async function* watched(): AsyncGenerator<GenerateEvent> {
      outcome = undefined;
      try {
        for await (const event of events()) {
          if (event.type === "delta") generated += event.text.length;
          yield event;
        }
        outcome = "ended";
      } finally {
        outcome ??= "left";
      }
    }
    try {
      const { signal } = connection;
      const call = {
        request,
        response,
        requestId: "req_1",
        unknown: {},
        signal,
        isLate: false,
        format: undefined,
        limits: undefined,
        streamFailure: undefined,
        facts,
      };
      await writeStream(call, streamOf(watched()), EVENTS, { ...LONG_TIMEOUTS, ...options });
    } catch (error) {
      assert.ok(error instanceof Failure);
      response.writeHead(error.row.http).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Characters of all deltas generated so far. */
    generated: () => generated,
    ended: () => outcome !== undefined,
    outcome: () => outcome,
    connections: () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count))),
  };
}
