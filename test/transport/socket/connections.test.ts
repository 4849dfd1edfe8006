import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { test } from "vitest";
import { toFailure } from "../../../src/contract/failure.ts";
import { connectionOf, refuseExcess } from "../../../src/transport/socket/connections.ts";
import { listenBoth } from "../../../src/transport/socket/listen.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { openRaw } from "../../helpers/raw.ts";
import { until } from "../../helpers/until.ts";

/** A request whose path says who sends it: `/caller`, `/operator`, or anybody. `/held` gets no end of a response. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  const { url } = request;
  try {
    if (url !== "/operator") refuseExcess(request, response);
    if (url === "/caller" || url === "/operator") connectionOf(request).know(url.slice(1) as "caller");
    if (url === "/held") response.write("held");
    else response.end("served");
  } catch (error) {
    response.writeHead(toFailure(error).row.http).end();
  }
}

/** A listener with at most `max` connections. `shed` lists the causes of closed and refused ones. */
async function start(t: Lifetime, max: number) {
  const shed: string[] = [];
  const listener = await listenBoth(serve, "127.0.0.1", 0, { max, onShed: (cause) => shed.push(cause) });
  t.onTestFinished(async () => {
    const closed = listener.close();
    listener.destroy();
    await closed;
  });
  const open = async (path: string) => {
    const raw = await openRaw(t, listener.url);
    const send = (path: string) => raw.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    const ask = async (path: string) => {
      send(path);
      return (await raw.read()).status;
    };
    if (path === "/held") {
      send(path);
      await raw.until("held");
    } else assert.equal(await ask(path), 200);
    return { ...raw, ask };
  };
  return { shed, url: listener.url, open };
}

/** Opens an HTTP/2 connection that has sent a request. */
async function openSession(t: Lifetime, url: string, path: string): Promise<ClientHttp2Session> {
  const session = connect(url);
  session.on("error", () => undefined);
  t.onTestFinished(() => session.destroy());
  const stream = session.request({ ":path": path });
  stream.on("error", () => undefined);
  await once(stream, path === "/held" ? "data" : "end");
  return session;

  function once(emitter: typeof stream, event: string) {
    return new Promise((resolve) => emitter.resume().once(event, resolve));
  }
}

test("closes the connection that has been idle for longest for a new one", async (t) => {
  const { open, shed } = await start(t, 3);
  const [first, held, third] = [await open("/"), await open("/held"), await open("/")];
  assert.equal(await first.ask("/"), 200);
  const fourth = await open("/");
  await third.closed;
  assert.deepEqual([await first.ask("/"), await fourth.ask("/"), shed], [200, 200, ["idle_connection"]]);
  assert.equal(held.socket.destroyed, false);
});

test("closes idle HTTP/2 connections, too, and none with an open request", async (t) => {
  const { open, url } = await start(t, 2);
  const held = await openSession(t, url, "/held");
  const idle = await openSession(t, url, "/");
  await open("/");
  await until(() => idle.destroyed);
  assert.equal(held.destroyed, false);
});

test("closes connections of unknown users first, and none of an operator", async (t) => {
  const { open, url } = await start(t, 3);
  const [operator, caller, unknown] = [await open("/operator"), await open("/caller"), await open("/")];
  const next = await open("/caller");
  await unknown.closed;
  const last = await openSession(t, url, "/operator");
  await caller.closed;
  await open("/held");
  await next.closed;
  assert.equal(await operator.ask("/"), 200);
  assert.equal(last.destroyed, false);
});

test("serves only operators when every connection has an open request", async (t) => {
  const { open, url, shed } = await start(t, 2);
  await open("/held");
  await openSession(t, url, "/held");
  const caller = await openRaw(t, url);
  caller.send("GET /caller HTTP/1.1\r\nHost: a\r\n\r\n");
  const { status, headers } = await caller.read();
  assert.deepEqual([status, headers.connection], [503, "close"]);
  const operator = await open("/operator");
  assert.equal(await operator.ask("/operator"), 200);
  const session = await openSession(t, url, "/operator");
  assert.equal(session.destroyed, false);
  assert.deepEqual(shed, ["connections", "connections", "connections"]);
});

test("keeps the connections of operators in a flood of others", async (t) => {
  const { open, url } = await start(t, 1);
  await open("/held");
  const operator = await open("/operator");
  const others: Array<Awaited<ReturnType<typeof openRaw>> | undefined> = [];
  for (let i = 0; i < 5; i++)
    others.push(...(await Promise.all(Array.from({ length: 20 }, () => openRaw(t, url).catch(() => undefined)))));
  await until(() => others.filter((other) => other && !other.socket.destroyed).length <= 31);
  assert.equal(await operator.ask("/operator"), 200);
  assert.equal(await (await open("/operator")).ask("/operator"), 200);
});

test("serves callers again when a connection has closed", async (t) => {
  const { open, url } = await start(t, 1);
  const held = await open("/held");
  held.socket.resetAndDestroy();
  await until(async () => {
    const next = await openRaw(t, url);
    next.send("GET /caller HTTP/1.1\r\nHost: a\r\n\r\n");
    return (await next.read()).status === 200;
  });
});

test("closes a connection with too many pipelined requests after the responses to those that wait", async (t) => {
  let begun = 0;
  let parsed = 0;
  const release = Promise.withResolvers<void>();
  const count = () => parsed++;
  subscribe("http.server.request.start", count);
  t.onTestFinished(() => void unsubscribe("http.server.request.start", count));
  const listener = await listenBoth(
    async (_, response) => {
      begun++;
      await release.promise;
      response.end("served");
    },
    ...(["127.0.0.1", 0, { max: 10, onShed: () => undefined }] as const),
  );
  t.onTestFinished(async () => {
    const closed = listener.close();
    listener.destroy();
    await closed;
  });
  const raw = await openRaw(t, listener.url);
  // More than the service reads at a time.
  raw.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100_000));
  await until(() => begun === 1);
  release.resolve();
  for (let i = 0; i < 32; i++) assert.equal((await raw.read()).headers.connection, "keep-alive");
  assert.equal((await raw.read()).headers.connection, "close");
  await raw.closed;
  await assert.rejects(raw.read(), /the connection ended/);
  assert.equal(begun, 33);
  // Node's parser stops at the first one that is dropped.
  assert.equal(parsed, 34);
});
