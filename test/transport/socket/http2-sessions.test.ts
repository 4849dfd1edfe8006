import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect, constants, createServer } from "node:http2";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import { test } from "vitest";
import {
  beginInTurns,
  HTTP2_OPTIONS,
  limitSessions,
  type SessionLimits,
} from "../../../src/transport/socket/http2-sessions.ts";
import { FLAG, FRAME, field, frame, PREFACE, SETTINGS } from "../../helpers/http2-frames.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { until } from "../../helpers/until.ts";

const LIMITS: SessionLimits = { firstRequestMs: 60_000, idleMs: 60_000, controlFrames: 200 };
/** Serves "ok", and counts the requests that reach the handler. */
async function serve(t: Lifetime, limits: Partial<SessionLimits> = {}) {
  const served = {
    requests: 0,
    accepted: 0,
    port: 0,
    url: "",
    connections: () =>
      new Promise<number>((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
  };
  const server = createServer(
    HTTP2_OPTIONS,
    beginInTurns((request, response) => {
      served.requests++;
      if (request.url === "/held") response.write("held");
      else response.end("ok");
    }),
  );
  server.on("connection", () => served.accepted++);
  limitSessions(server, { ...LIMITS, ...limits });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.onTestFinished(() => void server.close());
  served.port = (server.address() as AddressInfo).port;
  served.url = `http://127.0.0.1:${served.port}`;
  return served;
}

function open(t: Lifetime, url: string): ClientHttp2Session {
  const session = connect(url);
  session.on("error", () => undefined);
  t.onTestFinished(() => session.destroy());
  return session;
}

/**
 * Opens a connection that sends raw frames. `received` collects the bytes of the server.
 * @param options.allowHalfOpen keeps this side open when the server closes its side
 */
async function openFrames(
  t: Lifetime,
  port: number,
  options: { start?: Uint8Array; allowHalfOpen?: boolean } = {},
): Promise<{ socket: Socket; received: () => Buffer; end: Promise<unknown> }> {
  const { start = Buffer.concat([PREFACE, SETTINGS]), allowHalfOpen = false } = options;
  const socket = connectTcp({ host: "127.0.0.1", port, allowHalfOpen });
  t.onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  const end = new Promise((resolve) => socket.on("close", resolve));
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(socket, "connect");
  socket.write(start);
  return { socket, received: () => Buffer.concat(chunks), end };
}

/** The error code of the GOAWAY frame among the frames that were received; undefined when there is none. */
function goawayCode(bytes: Buffer): number | undefined {
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3))
    if (bytes[at + 3] === FRAME.goaway) return bytes.readUInt32BE(at + 13);
  return undefined;
}

async function answer(session: ClientHttp2Session): Promise<string> {
  const stream = session.request({ ":path": "/" });
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
}

test("states the limits of streams and headers", async (t) => {
  const { url } = await serve(t);
  const session = open(t, url);
  const [settings] = await once(session, "remoteSettings");
  assert.deepEqual([settings.maxConcurrentStreams, settings.maxHeaderListSize], [1_000, 16_384]);
});

test("refuses headers above the limit and keeps serving the connection", async (t) => {
  const { url } = await serve(t);
  const session = open(t, url);
  // The limit holds once the client has acknowledged it.
  assert.equal(await answer(session), "ok");
  const large = session.request({ ":path": "/", "x-large": "a".repeat(30_000) });
  large.on("error", () => undefined);
  await new Promise((resolve) => large.once("close", resolve));
  assert.notEqual(large.rstCode, 0);
  assert.equal(await answer(session), "ok");
});

/** A request without a body, in one frame. */
function requestFrame(stream: number): Buffer {
  const fields = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a" };
  const headers = Object.entries(fields).map(([name, value]) => field(name, value));
  return frame(FRAME.headers, FLAG.endStream | FLAG.endHeaders, stream, Buffer.concat(headers));
}

test("begins a few requests of a burst in each turn of the event loop, and of all connections in turn", async (t) => {
  const served = await serve(t);
  const { socket } = await openFrames(t, served.port);
  const session = open(t, served.url);
  assert.equal(await answer(session), "ok");
  const turns: number[] = [];
  const sent = Promise.withResolvers<string>();
  const watch = () => {
    const before = 1 + turns.reduce((sum, count) => sum + count, 0);
    turns.push(served.requests - before);
    if (before < 100 && served.requests >= 100) sent.resolve(answer(session));
    if (before < 501) setImmediate(watch);
  };
  watch();
  socket.write(Buffer.concat(Array.from({ length: 500 }, (_, i) => requestFrame(2 * i + 1))));
  const other = await sent.promise;
  assert.deepEqual([other, served.requests < 502], ["ok", true], "the other connection waits for a turn, not for all");
  await until(() => served.requests === 502);
  assert.ok(Math.max(...turns) <= 32, `${Math.max(...turns)} requests began in one turn`);
});

test("does not begin requests that are reset before their turn", async (t) => {
  const served = await serve(t);
  const { socket } = await openFrames(t, served.port);
  const reset = (stream: number) => frame(FRAME.reset, 0, stream, Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]));
  const streams = Array.from({ length: 150 }, (_, i) => 2 * i + 1);
  socket.write(Buffer.concat(streams.flatMap((stream) => [requestFrame(stream), reset(stream)])));
  assert.equal(await answer(open(t, served.url)), "ok");
  assert.ok(served.requests <= 33, `${served.requests} requests began`);
});

test("ends a connection that resets its requests in a flood", async (t) => {
  const { url } = await serve(t);
  const session = open(t, url);
  await once(session, "connect");
  const ended = new Promise<number>((resolve) => session.once("goaway", resolve));
  for (let i = 0; i < 3_000 && !session.closed; i++) {
    const call = session.request({ ":path": "/held" });
    call.on("error", () => undefined);
    call.close(constants.NGHTTP2_CANCEL);
  }
  assert.notEqual(await ended, 0);
  assert.equal(await answer(open(t, url)), "ok");
});

for (const [name, flood] of [
  ["PING", frame(FRAME.ping, 0, 0, Buffer.alloc(8))],
  ["SETTINGS", SETTINGS],
] as const) {
  test(`ends a connection that floods it with ${name} frames`, async (t) => {
    const { port, url } = await serve(t);
    const few = await openFrames(t, port);
    few.socket.write(Buffer.concat(Array.from({ length: 100 }, () => flood)));
    const many = await openFrames(t, port);
    many.socket.write(Buffer.concat(Array.from({ length: 5_000 }, () => flood)));
    await many.end;
    assert.equal(goawayCode(many.received()), constants.NGHTTP2_ENHANCE_YOUR_CALM);
    assert.equal(few.socket.destroyed, false);
    assert.equal(await answer(open(t, url)), "ok");
  });
}

test("ends a connection whose headers never end", async (t) => {
  const { port, url } = await serve(t);
  const { socket, end } = await openFrames(t, port);
  const large = field("a".repeat(100), "b".repeat(100));
  const more = frame(FRAME.continuation, 0, 1, Buffer.concat(Array.from({ length: 40 }, () => large)));
  socket.write(frame(FRAME.headers, 0, 1, large));
  for (let i = 0; i < 100 && !socket.destroyed; i++) socket.write(more);
  await end;
  assert.equal(await answer(open(t, url)), "ok");
});

for (const [name, start] of [
  ["without a first request", Buffer.concat([PREFACE, SETTINGS])],
  ["that stops within its preface", PREFACE.subarray(0, 10)],
  ["that stops within its settings", Buffer.concat([PREFACE, SETTINGS.subarray(0, 4)])],
  ["that stops within a frame", Buffer.concat([PREFACE, SETTINGS, frame(FRAME.headers, 0, 1).subarray(0, 4)])],
  ["whose headers stop after a frame", Buffer.concat([PREFACE, SETTINGS, frame(FRAME.headers, 0, 1, field("a", "b"))])],
] as const) {
  test(`closes the connection of a session ${name}, although the caller keeps its side open`, async (t) => {
    const served = await serve(t, { firstRequestMs: 1 });
    await openFrames(t, served.port, { start, allowHalfOpen: true });
    await until(async () => served.accepted === 1 && (await served.connections()) === 0);
  });
}

test("closes the connection of an idle session whose next headers stop", async (t) => {
  const served = await serve(t, { idleMs: 1 });
  const { socket } = await openFrames(t, served.port, { allowHalfOpen: true });
  socket.write(Buffer.concat([requestFrame(1), frame(FRAME.headers, 0, 3, field("a", "b"))]));
  await until(() => served.requests === 1);
  await until(async () => (await served.connections()) === 0);
});

test("ends an idle session, but none with an open request", async (t) => {
  const { url } = await serve(t, { idleMs: 1 });
  const busy = open(t, url);
  const held = busy.request({ ":path": "/held" });
  held.on("error", () => undefined);
  await once(held, "response");
  assert.equal(await answer(busy), "ok");
  const idle = open(t, url);
  assert.equal(await answer(idle), "ok");
  await once(idle, "close");
  assert.equal(busy.closed, false);
});
