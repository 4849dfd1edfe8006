import assert from "node:assert/strict";
import { once } from "node:events";
import { type RequestListener, request as requestHttp1 } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { setImmediate as tick } from "node:timers/promises";
import { test, vi } from "vitest";
import { type Listener, listenBoth } from "../../../src/transport/socket/listen.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { head, openRaw } from "../../helpers/raw.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);

/** Answers with the HTTP version and the request body. */
const echo: RequestListener = async (request, response) => {
  let body = "";
  try {
    for await (const chunk of request) body += chunk;
  } catch {
    return; // The connection broke.
  }
  response.end(`${request.httpVersion} ${body}`);
};

async function serve(t: Lifetime, handler = echo): Promise<Listener> {
  const listener = await listenBoth(handler, "127.0.0.1", 0);
  t.onTestFinished(async () => {
    const closed = listener.close();
    listener.destroy();
    await closed;
  });
  return listener;
}

function http2Session(t: Lifetime, url: string): ClientHttp2Session {
  const session = connectHttp2(url);
  session.on("error", () => undefined);
  t.onTestFinished(() => session.destroy());
  return session;
}

async function http2Answer(session: ClientHttp2Session, body = ""): Promise<string> {
  const stream = session.request({ ":method": "POST", ":path": "/" });
  stream.end(body);
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
}

test("detects the HTTP version for any split of the first bytes", async (t) => {
  const { url } = await serve(t);
  assert.equal(await http2Answer(http2Session(t, url), "hello"), "2.0 hello");
  for (const size of [1, 2, 3, 4, 1000]) {
    const raw = await openRaw(t, url);
    raw.socket.setNoDelay(true);
    const bytes = Buffer.from(`${head("POST", "/", { "Content-Length": 5 })}hello`);
    for (let at = 0; at < bytes.length; at += size) {
      raw.send(bytes.subarray(at, at + size));
      await tick();
    }
    assert.equal((await raw.read()).body, "1.1 hello");

    const second = await openRaw(t, url);
    second.socket.setNoDelay(true);
    const start = Buffer.concat([PREFACE, SETTINGS]);
    for (let at = 0; at < start.length; at += size) {
      second.send(start.subarray(at, at + size));
      await tick();
    }
    // The server's first frame is SETTINGS. Byte 3 holds the frame type.
    assert.equal((await second.until("\u0004")).charCodeAt(3), 4);
  }
});

test("answers two requests that arrive in one packet", async (t) => {
  const { url } = await serve(t);
  const raw = await openRaw(t, url);
  const one = `${head("POST", "/", { "Content-Length": 1 })}`;
  raw.send(`${one}a${one}b`);
  assert.deepEqual([(await raw.read()).body, (await raw.read()).body], ["1.1 a", "1.1 b"]);
});

test("answers a caller that half-closes after the request", async (t) => {
  const { url } = await serve(t);
  const raw = await openRaw(t, url);
  raw.socket.end(`${head("POST", "/", { "Content-Length": 1 })}a`);
  assert.equal((await raw.read()).body, "1.1 a");
});

test("refuses invalid bytes and closes the connection", async (t) => {
  const { url } = await serve(t);
  const hello = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]);
  for (const bytes of [
    hello,
    Buffer.alloc(100),
    Buffer.from("\r\n\r\nnonsense\r\n\r\n"),
    Buffer.from("PRI nonsense"),
  ]) {
    const raw = await openRaw(t, url);
    raw.send(bytes);
    if (!bytes.toString().startsWith("PRI")) assert.match(await raw.until("400"), /^HTTP\/1.1 400/);
    await raw.closed;
  }
  for (const bytes of ["", "P", "PR", "G"]) {
    const raw = await openRaw(t, url);
    raw.socket.end(bytes);
    await raw.closed;
  }
  for (const bytes of ["", "P", "PRI * HTTP/2.0\r\n", head("POST", "/", { "Content-Length": 9 })]) {
    const raw = await openRaw(t, url);
    raw.send(bytes);
    await tick();
    raw.socket.resetAndDestroy();
  }
  assert.equal(await http2Answer(http2Session(t, url)), "2.0 ");
});

test("ignores an upgrade to HTTP/2", async (t) => {
  const { url } = await serve(t);
  const raw = await openRaw(t, url);
  const upgrade = { Connection: "Upgrade, HTTP2-Settings", Upgrade: "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__" };
  raw.send(head("GET", "/", upgrade));
  assert.equal((await raw.read()).body, "1.1 ");
});

test("closes a silent or slow connection after 20 seconds", async (t) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  t.onTestFinished(() => void vi.useRealTimers());
  const { url } = await serve(t);
  for (const bytes of ["", "PR"]) {
    const raw = await openRaw(t, url);
    raw.send(bytes);
    // An answer on a second connection proves that the first one was accepted.
    assert.equal(await http2Answer(http2Session(t, url)), "2.0 ");
    vi.advanceTimersByTime(19_999);
    assert.equal(raw.socket.destroyed, false);
    vi.advanceTimersByTime(1);
    await raw.closed;
  }
});

test("serves two hundred concurrent connections of both versions", async (t) => {
  const { url } = await serve(t);
  const answers = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      if (i % 2 === 0) return http2Answer(http2Session(t, url), `${i}`);
      const raw = await openRaw(t, url);
      raw.send(`${head("POST", "/", { "Content-Length": `${i}`.length })}${i}`);
      return (await raw.read()).body;
    }),
  );
  assert.deepEqual(
    answers,
    answers.map((_, i) => `${i % 2 === 0 ? "2.0" : "1.1"} ${i}`),
  );
});

test("drain closes connections after their answer and accepts new ones; close ends idle ones", async (t) => {
  let release = Promise.withResolvers<void>();
  const begun: (() => void)[] = [];
  const listener = await serve(t, async (_, response) => {
    begun.shift()?.();
    await release.promise;
    response.end("ok");
  });
  const start = () => new Promise<void>((resolve) => begun.push(resolve));
  const idle = await openRaw(t, listener.url);
  const kept = await openRaw(t, listener.url);
  const session = http2Session(t, listener.url);
  const first = [start(), start()];
  kept.send(head("GET", "/"));
  const streamed = http2Answer(session);
  await Promise.all(first);

  listener.drain();
  await once(session, "goaway");
  const late = await openRaw(t, listener.url);
  const second = start();
  late.send(head("GET", "/"));
  await second;
  release.resolve();
  assert.equal(await streamed, "ok");
  assert.equal((await kept.read()).body, "ok");
  const response = await late.read();
  assert.deepEqual([response.headers.connection, response.body], ["close", "ok"]);
  await late.closed;

  // The head of its previous answer may have been sent before draining began.
  kept.send(head("GET", "/"));
  assert.equal((await kept.read()).headers.connection, "close");
  assert.equal(idle.socket.destroyed, false);
  release = Promise.withResolvers();
  release.resolve();
  await listener.close();
  await idle.closed;
});

test("rejects a port in use", async (t) => {
  const { url } = await serve(t);
  await assert.rejects(listenBoth(echo, "127.0.0.1", Number(new URL(url).port)), { code: "EADDRINUSE" });
  await assert.rejects(listenBoth(echo, "192.0.2.1", 0), { code: "EADDRNOTAVAIL" });
});

test("keeps a connection alive for a second request", async (t) => {
  const { url } = await serve(t);
  const raw = await openRaw(t, url);
  for (const body of ["a", "b"]) {
    raw.send(`${head("POST", "/", { "Content-Length": 1 })}${body}`);
    const answer = await raw.read();
    assert.deepEqual([answer.headers.connection, answer.body], ["keep-alive", `1.1 ${body}`]);
  }
  const request = requestHttp1(url, { method: "POST" });
  request.end("c");
  const [response] = await once(request, "response");
  let text = "";
  for await (const chunk of response) text += chunk;
  assert.equal(text, "1.1 c");
});

test("closes an HTTP/2 connection when the caller closes its half within a frame", async (t) => {
  const { url } = await serve(t);
  const raw = await openRaw(t, url);
  raw.socket.resume();
  raw.socket.end(Buffer.concat([PREFACE, SETTINGS.subarray(0, 4)]));
  await raw.closed;
});
