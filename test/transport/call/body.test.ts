import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { describe, vi } from "vitest";
import { LinkedAbort } from "../../../src/concurrency/abort.ts";
import { CallerGone } from "../../../src/contract/endings.ts";
import { Failure } from "../../../src/contract/failure.ts";
import { type BodyHold, createBodyBudget } from "../../../src/overload/body-budget.ts";
import { BODIES } from "../../../src/overload/bounds.ts";
import { createJsonCounter } from "../../../src/overload/value-count.ts";
import { discardBody } from "../../../src/transport/call/discard-body.ts";
import { decodeText, parseBody } from "../../../src/transport/call/json-body.ts";
import { readBody } from "../../../src/transport/call/receive.ts";
import { adminOf } from "../../helpers/admin.ts";
import { codePoint } from "../../helpers/code-point.ts";
import { test as base } from "../../helpers/fixtures.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { startService } from "../../helpers/service.ts";
import { until } from "../../helpers/until.ts";

const MB = 1024 * 1024;

const test = base.extend("shared", { scope: "file" }, async ({ serviceOfFile: service }) => {
  const post = { "X-API-Key": service.apiKey, "Content-Type": "application/json" };
  return { post };
});

const WORKSPACE = { workspaceId: "ws_1" };

/** Reads the body of a request of a workspace. */
async function read(request: IncomingMessage, budget = createBodyBudget(BODIES.max, TIMEOUTS), proceed = () => {}) {
  const response = { writeContinue: proceed } as ServerResponse;
  const call: Parameters<typeof readBody>[0] = {
    request,
    response,
    signal: new LinkedAbort(undefined),
    hold: undefined,
  };
  const blocks = await readBody(call, budget, WORKSPACE, { maxBytes: BODIES.max, count: createJsonCounter() });
  return { blocks, hold: call.hold };
}

type Body = Awaited<ReturnType<typeof read>>;
const TIMEOUTS = { idleMs: 10_000, totalMs: 300_000 };

/** Opens bodies in a budget of 256 MB. `aborted` lists the kinds of the failures of those that were aborted. */
function bodies() {
  const budget = createBodyBudget(256 * MB, TIMEOUTS);
  const aborted: string[] = [];
  const open = (workspaceId: string, megabytes = 0): BodyHold => {
    const hold = budget.open({ workspaceId }, ({ kind }) => aborted.push(`${workspaceId} ${kind}`));
    if (megabytes > 0) hold.take(megabytes * MB);
    return hold;
  };
  /** Adds complete bodies of 1 MB. */
  const fill = (workspaceId: string, megabytes: number) => {
    for (let i = 0; i < megabytes; i++) open(workspaceId, 1).complete();
  };
  return { budget, aborted, open, fill };
}

describe("the body budget", () => {
  test("gives a workspace at most half, and the last quarter to workspaces that use up to 1 MB", () => {
    const { budget, aborted, open, fill } = bodies();
    fill("a", 128);
    assert.throws(() => open("a", 1), isOverloaded);
    fill("b", 64);
    assert.throws(() => open("c", 2), isOverloaded);
    for (let i = 0; i < 64; i++) open(`small ${i}`, 1).complete();
    assert.throws(() => open("d").take(1), isOverloaded);
    assert.equal(budget.used, 256 * MB);
    assert.deepEqual(aborted, []);
  });

  test("fits one body of the largest size, and small ones beside it, whatever the total", () => {
    const budget = createBodyBudget(BODIES.max, TIMEOUTS);
    const ignore = () => undefined;
    const hold = budget.open({ workspaceId: "a" }, ignore);
    hold.expect(BODIES.max);
    hold.take(BODIES.max);
    hold.complete();
    budget.open({ workspaceId: "b" }, ignore).take(MB);
    hold.release();
    hold.release();
    assert.equal(budget.used, MB);
  });

  test("aborts the oldest arriving body of the workspace that uses most, for one that uses less", () => {
    const { budget, aborted, open } = bodies();
    const slow = Array.from({ length: 4 }, () => open("a", 30));
    open("b", 60);
    // 180 of 192 MB are used.
    open("c", 20);
    assert.deepEqual(aborted, ["a overloaded"]);
    assert.equal(budget.used, 170 * MB);
    assert.throws(() => slow[0]?.take(1), CallerGone);
    // The workspace that uses most gives way itself.
    assert.throws(() => slow[1]?.take(30 * MB), isOverloaded);
    assert.equal(aborted.length, 1);
  });

  test("takes nothing for bodies that have not arrived, and refuses one that cannot fit", () => {
    const { budget, open, fill } = bodies();
    for (let i = 0; i < 100; i++) open("idle").expect(BODIES.max);
    assert.equal(budget.used, 0);
    fill("a", 128);
    fill("b", 32);
    const hold = open("c");
    hold.expect(32 * MB);
    assert.throws(() => hold.expect(33 * MB), isOverloaded);
  });

  test("keeps the memory of sign-ins, owners and operators apart from that of callers", () => {
    const { budget, open, fill } = bodies();
    fill("a", 128);
    fill("b", 64);
    for (let i = 0; i < 64; i++) open(`small ${i}`, 1).complete();
    budget.open({ admin: "operator" }, () => undefined).take(64 * 1024);
    assert.equal(budget.used, 256 * MB + 64 * 1024);
  });

  test("aborts a body that pauses, that is too slow, or that takes too long", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    try {
      const { budget, aborted, open } = bodies();
      open("silent");
      const sending = new Map(["paused", "slow", "long"].map((name) => [name, open(name)]));
      const send = (name: string, bytes: number) => {
        if (!aborted.includes(`${name} request_incomplete`)) sending.get(name)?.take(bytes);
      };
      for (let second = 1; second <= 310; second++) {
        if (second <= 4) send("paused", 10 * MB);
        send("slow", 10_000);
        send("long", 20_000);
        vi.advanceTimersByTime(1_000);
        await setImmediate();
        if (second === 10) assert.deepEqual(aborted, ["silent request_incomplete"]);
        if (second === 14) assert.deepEqual(aborted.slice(1), ["paused request_incomplete"]);
      }
      assert.deepEqual(aborted.slice(2), ["slow request_incomplete", "long request_incomplete"]);
      assert.equal(budget.used, 0);
      // The search has ended.
      assert.equal(vi.getTimerCount(), 0);
    } finally {
      vi.useRealTimers();
    }
  });
});

function textOf({ blocks }: Body): string {
  return decodeText(blocks.join());
}

test("aborts the late bodies of a sweep in turns of the event loop", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  try {
    const { budget, aborted, open } = bodies();
    for (let i = 0; i < 100; i++) open(`body ${i}`);
    vi.advanceTimersByTime(11_000);
    await setImmediate();
    assert.ok(aborted.length > 0 && aborted.length <= 32, `${aborted.length} bodies at once`);
    while (aborted.length < 100) await setImmediate();
    assert.equal(budget.used, 0);
  } finally {
    vi.useRealTimers();
  }
});

test("reads the same text for any split into chunks, and releases the budget once", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: codePoint }), fc.array(fc.nat(40)), fc.boolean(), async (text, cuts, stated) => {
      const bytes = Buffer.from(text);
      const chunks: Buffer[] = [];
      let from = 0;
      for (const length of cuts) {
        chunks.push(bytes.subarray(from, from + length));
        from += length;
      }
      chunks.push(bytes.subarray(from));
      const budget = createBodyBudget(BODIES.max, TIMEOUTS);
      const body = await read(message(chunks, stated ? { "content-length": `${bytes.length}` } : {}), budget);
      assert.equal(textOf(body), text.replace(/^\ufeff/, ""));
      assert.equal(budget.used, bytes.length);
      body.hold?.release();
      body.hold?.release();
      assert.equal(budget.used, 0);
    }),
  );
});

test("refuses invalid UTF-8 for any split into chunks", async () => {
  const bytes = Buffer.from([0x7b, 0xe6, 0xbc, 0xa2, 0xe6, 0xbc]);
  for (let at = 0; at < bytes.length; at++) {
    const request = message([bytes.subarray(0, at), bytes.subarray(at)]);
    const body = await read(request);
    assert.throws(
      () => textOf(body),
      (error) => error instanceof Failure && error.kind === "invalid_json" && /UTF-8/.test(error.message),
    );
  }
});

/**
 * Sends bodies to a server, each on its own connection, and reads them when all requests have arrived.
 * @param read reads or drops a body
 * @param progress returns the bytes that have been read
 * @returns the mean of the bytes that a turn of the event loop reads, after the first `from`
 */
async function meanOfTurns(
  t: Lifetime,
  { count, size, from }: { count: number; size: number; from: number },
  read: (request: IncomingMessage) => Promise<unknown>,
  progress: () => number,
): Promise<number> {
  let requests = 0;
  const allThere = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    if (++requests === count) allThere.resolve();
    await allThere.promise;
    await read(request);
    response.end();
  });
  server.listen(0, "127.0.0.1");
  t.onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  // In a thread, because it must send while this one reads.
  const send = `for (let i = 0; i < ${count}; i++)
    fetch("http://127.0.0.1:${port}", { method: "POST", body: Buffer.alloc(${size}, 32) }).then((r) => r.text())`;
  let hasEnded = false;
  const ended = once(new Worker(send, { eval: true }), "exit").then(() => {
    hasEnded = true;
  });
  const turns: number[] = [];
  for (let last = 0; !hasEnded; last = progress()) {
    await setImmediate();
    if (last >= from && progress() > last) turns.push(progress() - last);
  }
  await ended;
  return turns.reduce((sum, bytes) => sum + bytes, 0) / turns.length;
}

test("reads large bodies a chunk at a time, with other work between the chunks", async ({ t }) => {
  const budget = createBodyBudget(256 * MB, TIMEOUTS);
  const bodies: Body[] = [];
  const chunks: Buffer[] = [];
  const keep = async (request: IncomingMessage) => {
    request.on("data", (chunk) => chunks.push(chunk));
    bodies.push(await read(request, budget));
  };
  // Each body may be small, so its first bytes are read at once.
  const mean = await meanOfTurns(t, { count: 8, size: 8 * MB, from: 8 * 512 * 1024 }, keep, () => budget.used);
  assert.deepEqual(
    bodies.map(({ blocks }) => blocks.size),
    Array(8).fill(8 * MB),
  );
  assert.deepEqual(new Set(chunks.map(({ length }) => length)), new Set([0]), "the memory of the chunks is free");
  assert.ok(mean <= 2.5 * 65_536, `${mean} bytes in a turn of the event loop`);
});

test("drops refused bodies a few chunks at a time, with other work between them", async ({ t }) => {
  let dropped = 0;
  const chunks: Buffer[] = [];
  const drop = (request: IncomingMessage) => {
    request.on("data", (chunk: Buffer) => {
      dropped += chunk.length;
      chunks.push(chunk);
    });
    return discardBody(request);
  };
  // The first chunk of each body is read at once.
  const mean = await meanOfTurns(t, { count: 16, size: MB, from: 16 * 65_536 }, drop, () => dropped);
  assert.equal(dropped, 16 * MB);
  assert.deepEqual(new Set(chunks.map(({ length }) => length)), new Set([0]), "the memory of the chunks is free");
  assert.ok(mean <= 5 * 65_536, `${mean} bytes in a turn of the event loop`);
});

test("rejects at once when the sender has already left", async () => {
  const request = message([]);
  request.destroy();
  await assert.rejects(
    read(request, undefined, () => assert.fail("sent 100 Continue to a caller that left")),
    CallerGone,
  );
});

test("refuses a body of more than 100,000 values and does not count the content of strings", async () => {
  const readText = (text: string) => {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, i) =>
      bytes.subarray(i * 65_536, (i + 1) * 65_536),
    );
    return read(message(chunks));
  };
  const list = (count: number) => `{"a":[${"0,".repeat(count - 1)}0]}`;
  assert.equal(textOf(await readText(list(99_000))), list(99_000));
  // The last body would take 10 s to parse.
  for (const text of [
    list(100_001),
    `{"a":${"[".repeat(100_001)}`,
    `{"a":[${"{},".repeat(50_001)}0]}`,
    `{"a":[${"[],".repeat(20 * MB)}0]}`,
  ]) {
    await assert.rejects(readText(text), (error) => error instanceof Failure && error.kind === "request_too_large");
  }
  for (const text of [
    JSON.stringify({ [`${"[{,".repeat(100_000)}\\`]: `\\"${',"'.repeat(100_000)}\\\\` }),
    `{"a":${"\\\\".repeat(10 * MB)}"`,
    `{"a":"${'\\"'.repeat(10 * MB)}`,
  ])
    assert.equal(textOf(await readText(text)), text);
});

test("parseBody returns the same value as JSON.parse", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(parseBody(text), JSON.parse(text));
    }),
  );
});

describe("bodies over the public listener", () => {
  test("refuses 64 MB + 1 byte by Content-Length, without reading the body", async ({
    service,
    shared: { post },
    t,
  }) => {
    const raw = await openRaw(t, service.url);
    raw.send(head("POST", "/v1/generate", { ...post, "Content-Length": BODIES.max + 1 }));
    const refused = await raw.read();
    assert.equal(refused.status, 413);
    const { message, request_id, ...rest } = JSON.parse(refused.body);
    assert.deepEqual(rest, { code: "request_too_large" });
    assert.match(message, /67,108,864/);
    await raw.closed;
  });

  test("accepts 64 MB, and refuses a chunked body at the first byte beyond", async ({
    service,
    shared: { post },
    t,
  }) => {
    const start = '{"prompt":"a","x":"';
    const body = Buffer.alloc(BODIES.max, "x");
    body.write(start);
    body.write('"}', BODIES.max - 2);
    const stated = await openRaw(t, service.url);
    stated.send(head("POST", "/v1/generate", { ...post, "Content-Length": BODIES.max }));
    stated.send(body);
    assert.equal((await stated.read()).status, 200);

    const chunked = await openRaw(t, service.url);
    chunked.send(head("POST", "/v1/generate", { ...post, "Transfer-Encoding": "chunked" }));
    chunked.send(`${BODIES.max.toString(16)}\r\n`);
    chunked.send(body);
    chunked.send("\r\n1\r\nx\r\n");
    assert.equal((await chunked.read()).status, 413);
  });

  test("refuses 64 MB with a bad key without reading the body", async ({ service, shared: { post }, t }) => {
    const raw = await openRaw(t, service.url);
    // A second after the reply, the connection is closed, and nothing waits any more.
    let unread = 0;
    raw.socket.once("data", () => {
      unread = raw.socket.writableLength;
    });
    // One write: a second one would fail, and end the reading, if the service had closed the connection before it.
    const start = head("POST", "/v1/generate", { ...post, "X-API-Key": "bad", "Content-Length": BODIES.max });
    raw.send(Buffer.concat([Buffer.from(start), Buffer.alloc(BODIES.max)]));
    assert.equal((await raw.read()).status, 401);
    assert.ok(unread > 40 * MB, `${unread} bytes were not read`);
  });

  test("refuses a body that exceeds the budget instead of sending 100 Continue", async ({
    service,
    shared: { post },
    t,
  }) => {
    const headers = { ...post, Expect: "100-continue", "Content-Length": 60 * MB };
    const open = async () => {
      const raw = await openRaw(t, service.url);
      raw.send(head("POST", "/v1/generate", headers));
      return { raw, status: (await raw.read()).status };
    };
    const holders = await Promise.all([open(), open()]);
    for (const { raw, status } of holders) {
      assert.equal(status, 100);
      raw.send(Buffer.alloc(59 * MB, "x"));
    }
    const opens = async (expected: number) => {
      const { raw, status } = await open();
      raw.socket.destroy();
      return status === expected;
    };
    await until(() => opens(503));
    assert.equal((await service.post("/v1/generate", { prompt: "small" })).status, 200);
    // A large body fits when the sender of another large body leaves.
    holders[0]?.raw.socket.destroy();
    await until(() => opens(100));
  });

  test("serves others while one workspace keeps bodies open without sending them", async ({
    service,
    shared: { post },
    database: { pool },
    t,
  }) => {
    const idle = { ...post, Expect: "100-continue", "Content-Length": 4 * MB };
    for (const raw of await Promise.all(Array.from({ length: 80 }, () => openRaw(t, service.url)))) {
      raw.send(head("POST", "/v1/generate", idle));
      assert.equal((await raw.read()).status, 100);
    }
    const { workspaces, keys, credits } = adminOf(pool);
    await workspaces.createWorkspace({ name: "beside" });
    const { secret } = await keys.createKey({ workspace: "beside" });
    await credits.grant({ workspace: "beside", amount: "1000", reference: "r" });
    const beside = { "x-api-key": secret };
    assert.equal((await service.post("/v1/generate", { prompt: "small" }, beside)).status, 200);
    const large = { prompt: "a", x: "x".repeat(60 * MB) };
    assert.equal((await service.post("/v1/generate", large, beside)).status, 200);
    const signIn = await fetch(`${service.url}/console/session`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Origin: service.url },
      body: '{"token":"ow_none"}',
    });
    assert.equal(signIn.status, 401);
  });

  test("refuses a workspace without credit before it reads the body", async ({ service, database: { pool }, t }) => {
    const { workspaces, keys } = adminOf(pool);
    await workspaces.createWorkspace({ name: "poor" });
    const { secret } = await keys.createKey({ workspace: "poor" });
    const headers = { "X-API-Key": secret, "Content-Type": "application/json", "Content-Length": 1_000 };
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      const raw = await openRaw(t, service.url);
      raw.send(head("POST", path, headers));
      assert.equal((await raw.read()).status, 402);
    }
    const rpc = await openRaw(t, service.rpcUrl);
    rpc.send(head("POST", "/chorus.v1.GenerationService/Generate", headers));
    assert.match((await rpc.read()).body, /insufficient_credit/);
    // The owner's other calls still work.
    assert.equal((await service.get("/v1/quotas", { "x-api-key": secret })).status, 200);
  });

  test("answers 408 to a body that stops arriving, and closes its connection", async ({ t, database, vendor }) => {
    const env = { ...vendor.env, CHORUS_BODY_MS: '{"idleMs":300}' };
    const service = await startService(t, { databaseUrl: database.url, env });
    const raw = await openRaw(t, service.url, { allowHalfOpen: true });
    const headers = { "X-API-Key": service.apiKey, "Content-Type": "application/json", "Content-Length": 99 };
    raw.send(`${head("POST", "/v1/generate", headers)}{"prompt":`);
    const late = await raw.read();
    assert.equal(late.status, 408);
    assert.equal(JSON.parse(late.body).code, "malformed_request");
    assert.equal(JSON.parse(late.body).request_id, late.headers["x-request-id"]);
    // Writing fails as soon as the server has closed the connection.
    await until(() => raw.socket.destroyed || void raw.socket.write("x"));
  });
});

function isOverloaded(error: unknown): boolean {
  return error instanceof Failure && error.kind === "overloaded" && error.retryAfterMs === 1_000;
}

function message(chunks: Buffer[], headers: Record<string, string> = {}): IncomingMessage {
  return Object.assign(Readable.from(chunks, { objectMode: true }), { headers }) as unknown as IncomingMessage;
}
