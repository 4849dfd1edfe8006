import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { test } from "vitest";
import {
  GenerateRequestSchema,
  GenerateResponseSchema,
  GenerationService,
  StreamGenerateResponse_DoneSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { onAbort } from "../../../src/concurrency/abort.ts";
import { CallerGone } from "../../../src/contract/endings.ts";
import { Failure } from "../../../src/contract/failure.ts";
import type { GenerateEvent, RequestContext } from "../../../src/generate/request-context.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { head, openRaw, type RawResponse } from "../../helpers/raw.ts";
import { rpcFailure, serveRpc, transports } from "../../helpers/rpc.ts";
import { until } from "../../helpers/until.ts";

const GENERATE = "/chorus.v1.GenerationService/Generate";
const STREAM = "/chorus.v1.GenerationService/StreamGenerate";
const PROTO = { "Content-Type": "application/proto" };
const MAX = 64 * 1024 * 1024;

const generateWhole = async () => create(GenerateResponseSchema, { answer: "ok" });
const unauthorized = async () => {
  throw new Failure("unauthenticated");
};

test("accepts a request without a valid Host header", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  for (const hostLine of ["Host: [\r\n", "Host: a b\r\n", "Host: ://\r\n", "Host:\r\n"]) {
    const raw = await openRaw(t, url);
    raw.send(`POST ${GENERATE} HTTP/1.1\r\n${hostLine}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`);
    assert.equal((await raw.read()).status, 200, hostLine);
  }
  const raw = await openRaw(t, url);
  raw.send(`POST ${GENERATE} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`);
  assert.equal((await raw.read()).status, 200);
});

test("refuses an unknown path, method or content type with a request id", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const raw = await openRaw(t, url);
  for (const [method, path, type, status] of [
    ["POST", "/", "application/json", 404],
    ["POST", "/chorus.v1.GenerationService/Nope", "application/json", 404],
    ["POST", `${GENERATE}/`, "application/json", 404],
    ["GET", GENERATE, "application/json", 405],
    ["POST", GENERATE, "text/plain", 415],
    ["POST", GENERATE, "", 415],
  ] as const) {
    raw.send(head(method, path, { "Content-Type": type, "Content-Length": 0 }));
    const response = await raw.read();
    assert.equal(response.status, status, `${method} ${path} ${type}`);
    assert.match(response.headers["x-request-id"] ?? "", /^req_/);
  }
});

test("refuses a bad key before it reads the body", async (t) => {
  const { url } = await serveRpc(t, { authorize: unauthorized, generation: { generateWhole } });
  const raw = await openRaw(t, url);
  raw.send(head("POST", GENERATE, { ...PROTO, "Content-Length": 60_000_000, Expect: "100-continue" }));
  const response = await raw.read();
  assert.equal(response.status, 401);
  assert.match(response.body, /"unauthenticated"/);

  const stream = openHttp2(t, url, GENERATE, "application/grpc");
  const [headers, trailers] = await Promise.all([once(stream, "response"), once(stream.resume(), "trailers")]);
  assert.equal({ ...headers[0], ...trailers[0] }["grpc-status"], "16");
});

test("sends 100 Continue when the body budget has room", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const raw = await openRaw(t, url);
  raw.send(head("POST", GENERATE, { "Content-Type": "application/json", "Content-Length": 2, Expect: "100-continue" }));
  assert.equal((await raw.read()).status, 100);
  raw.send("{}");
  assert.equal((await raw.read()).status, 200);
});

test("refuses more than 64 MB by Content-Length, by message prefix or while reading", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });

  const stated = await openRaw(t, url);
  stated.send(head("POST", GENERATE, { ...PROTO, "Content-Length": MAX + 1 }));
  const refused = await stated.read();
  assert.equal(refused.status, 400);
  const { code, details } = JSON.parse(refused.body);
  assert.deepEqual([code, details[0].debug.code], ["out_of_range", "request_too_large"]);

  const prefixed = openHttp2(t, url, STREAM, "application/grpc");
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(MAX + 1, 1);
  prefixed.write(prefix);
  const [headers, trailers] = await Promise.all([once(prefixed, "response"), once(prefixed.resume(), "trailers")]);
  assert.equal({ ...headers[0], ...trailers[0] }["grpc-status"], "11");

  const chunked = httpRequest(url + GENERATE, { method: "POST", headers: PROTO });
  chunked.on("error", () => undefined);
  const answered = once(chunked, "response");
  // The header of the field `system` with a length of 80 MB.
  chunked.write(Buffer.from([0x1a, 0x80, 0x80, 0x80, 0x28]));
  const megabyte = Buffer.alloc(1024 * 1024, "x");
  for (let i = 0; i < 64; i++) if (!chunked.write(megabyte)) await once(chunked, "drain");
  chunked.write("x".repeat(6));
  const [response] = await answered;
  let body = "";
  for await (const chunk of response) body += chunk;
  assert.equal(JSON.parse(body).code, "out_of_range");
});

test("refuses a body of more than 100,000 values before it decodes the body", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const empty = (count: number, ...pair: number[]) => Buffer.alloc(2 * count, Buffer.from(pair));
  const prefix = Buffer.from([0, 0, 3, 0x0d, 0x42]);
  for (const [type, body] of [
    ["application/proto", empty(100_001, 0x12, 0)],
    ["application/json", Buffer.from(`{"x":[${"[],".repeat(100_000)}[]]}`)],
    ["application/grpc-web+proto", Buffer.concat([prefix, empty(100_001, 0x42, 0)])],
  ] as const) {
    const raw = await openRaw(t, url);
    raw.send(head("POST", GENERATE, { "Content-Type": type, "Content-Length": body.length }));
    raw.send(body);
    assert.match(JSON.stringify(await raw.read()), /out_of_range|grpc-status: 11/, type);
  }
  const raw = await openRaw(t, url);
  raw.send(head("POST", GENERATE, { ...PROTO, "Content-Length": 200_000 }));
  raw.send(empty(100_000, 0x12, 0));
  assert.match((await raw.read()).body, /messages may have 40 items/);
});

test("accepts 64 MB", async (t) => {
  const seen: number[] = [];
  const { url } = await serveRpc(t, {
    generation: {
      generateWhole: async (request) => {
        if ("checked" in request) seen.push(request.checked.attachments[0]?.data.length ?? 0);
        return generateWhole();
      },
    },
  });
  const data = new Uint8Array(MAX - 100);
  const attachments = [{ name: "f", mediaType: "image/png", data }];
  for (const name of ["Connect over HTTP/1.1", "gRPC"] as const) {
    await createClient(GenerationService, transports(url)[name]).generate({ prompt: "p", attachments });
  }
  assert.deepEqual(seen, [data.length, data.length]);
});

test("limits the message size of other services to less than 2 MB", async (t) => {
  const { url } = await serveRpc(t, {});
  const raw = await openRaw(t, url);
  const headers = { "Content-Type": "application/json", "Content-Length": 2 * 1024 * 1024 };
  raw.send(head("POST", "/grpc.health.v1.Health/Check", headers));
  assert.match((await raw.read()).body, /"out_of_range"/);
});

test("charges bodies to one budget and releases them", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } }, { bodyBudgetBytes: MAX });
  const headers = { "Content-Type": "application/json", Expect: "100-continue" };
  const part = `{"prompt":"${"x".repeat(59_900_000)}`;
  const first = await openRaw(t, url);
  first.send(head("POST", GENERATE, { ...headers, "Content-Length": 60_000_000 }));
  assert.equal((await first.read()).status, 100);
  first.send(part);

  // Fits until all of the first body has arrived.
  const rest = MAX - part.length + 1;
  let refused: RawResponse | undefined;
  await until(async () => {
    const second = await openRaw(t, url);
    second.send(head("POST", GENERATE, { ...headers, "Content-Length": rest }));
    refused = await second.read();
    second.socket.destroy();
    return refused.status !== 100;
  });
  assert.ok(refused);
  const { code, details } = JSON.parse(refused.body);
  assert.deepEqual([code, details[0].debug.code], ["unavailable", "overloaded"]);
  assert.equal(refused.headers["retry-after"], "1");

  const attachments = [{ name: "f", mediaType: "image/png", data: new Uint8Array(8_000_000) }];
  const client = createClient(GenerationService, transports(url).gRPC);
  assert.equal((await rpcFailure(client.generate({ prompt: "p", attachments }))).detail?.code, "overloaded");
  assert.equal((await client.generate({ prompt: "small" })).answer, "ok");

  first.socket.destroy();
  for (let answer = ""; answer !== "ok"; )
    answer = await client.generate({ prompt: "p", attachments }).then(
      (response) => response.answer,
      () => "",
    );
});

test("aborts a call when the caller leaves", async (t) => {
  for (const [name, transport] of Object.entries(
    transports((await serveRpc(t, { generation: { generate: endless, generateWhole: waiting } })).url),
  )) {
    ended = Promise.withResolvers();
    const client = createClient(GenerationService, transport);
    const leave = new AbortController();
    for await (const { event } of client.streamGenerate({ prompt: "a" }, { signal: leave.signal })) {
      assert.equal(event.case, "delta");
      break;
    }
    leave.abort();
    assert.equal(await ended.promise, "aborted", name);

    ended = Promise.withResolvers();
    const unary = new AbortController();
    started = Promise.withResolvers();
    const failure = rpcFailure(client.generate({ prompt: "a" }, { signal: unary.signal }));
    await started.promise;
    unary.abort();
    assert.equal((await failure).code, "Canceled");
    assert.equal(await ended.promise, "aborted", name);
  }
});

test("ends a stream whose reader stalls, over HTTP/1.1 and HTTP/2", async (t) => {
  const { url } = await serveRpc(t, { generation: { generate: flood } }, { stallMs: 100 });
  const message = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { prompt: "a" }));
  const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);

  ended = Promise.withResolvers();
  const stream = openHttp2(t, url, STREAM, "application/grpc");
  stream.on("error", () => undefined);
  stream.end(envelope);
  await once(stream, "response");
  assert.equal(await ended.promise, "aborted");
  if (!stream.closed) await once(stream.resume(), "close");
  assert.equal(stream.rstCode, 8);

  ended = Promise.withResolvers();
  const raw = await openRaw(t, url);
  raw.socket.pause();
  raw.send(
    Buffer.concat([
      Buffer.from(
        head("POST", STREAM, { "Content-Type": "application/connect+proto", "Content-Length": envelope.length }),
      ),
      envelope,
    ]),
  );
  assert.equal(await ended.promise, "aborted");
  raw.socket.resume();
  await raw.closed;
});

test("enforces the caller's deadline, and ignores one that exceeds Node's timers", async (t) => {
  const { url } = await serveRpc(t, { generation: { generate: endless, generateWhole: waiting } });
  for (const [name, transport] of Object.entries(transports(url))) {
    ended = Promise.withResolvers();
    const client = createClient(GenerationService, transport);
    assert.equal((await rpcFailure(client.generate({ prompt: "a" }, { timeoutMs: 1_000 }))).code, "DeadlineExceeded");
    assert.equal(await ended.promise, "aborted", name);
  }
  // Sends raw requests, because a client would enforce the deadline too.
  for (const [path, body] of [
    [GENERATE, "{}"],
    [STREAM, "\0\0\0\0\u0002{}"],
  ] as const) {
    const raw = await openRaw(t, url);
    const type = path === GENERATE ? "application/json" : "application/connect+json";
    const headers = { "Content-Type": type, "Connect-Timeout-Ms": 30, "Content-Length": body.length };
    raw.send(head("POST", path, headers) + body);
    const response = await raw.read();
    assert.match(response.body, /"deadline_exceeded".*"code":"timed_out"/);
  }
  const server = await serveRpc(t, { generation: { generateWhole } });
  for (const timeout of [{ "connect-timeout-ms": "9999999999" }, { "connect-timeout-ms": "2147483648" }]) {
    const raw = await openRaw(t, server.url);
    raw.send(`${head("POST", GENERATE, { ...timeout, "Content-Type": "application/json", "Content-Length": 2 })}{}`);
    assert.equal((await raw.read()).status, 200);
  }
  for (const timeout of ["99999999H", "2562047H", "99999999S", "5S"]) {
    const stream = openHttp2(t, server.url, GENERATE, "application/grpc", { "grpc-timeout": timeout });
    stream.end(Buffer.alloc(5));
    const [trailers] = await once(stream.resume(), "trailers");
    assert.equal(trailers["grpc-status"], "0", timeout);
  }
});

test("refuses compressed messages and sends uncompressed answers", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const raw = await openRaw(t, url);
  raw.send(head("POST", GENERATE, { ...PROTO, "Content-Encoding": "gzip", "Content-Length": 0 }));
  assert.match((await raw.read()).body, /"unimplemented"/);
  raw.send(
    head("POST", GENERATE, { "Content-Type": "application/json", "Accept-Encoding": "gzip", "Content-Length": 2 }),
  );
  raw.send("{}");
  assert.equal((await raw.read()).headers["content-encoding"], undefined);
});

test("keeps serving after connections break", async (t) => {
  const { url } = await serveRpc(t, { generation: { generate: flood, generateWhole } });
  const broken = Array.from({ length: 20 }, async (_, i) => {
    const raw = await openRaw(t, url);
    const headers = { "Content-Type": "application/connect+json", "Content-Length": 7 };
    raw.send(head("POST", STREAM, headers) + "\0\0\0\0\u0002{}".slice(0, i % 8));
    if (i % 8 === 7) await raw.until("HTTP/1.1 200");
    raw.socket.resetAndDestroy();
  });
  await Promise.all(broken);
  const client = createClient(GenerationService, transports(url)["Connect over HTTP/1.1"]);
  assert.equal((await client.generate({ prompt: "a" })).answer, "ok");
});

let started = Promise.withResolvers<void>();
let ended = Promise.withResolvers<string>();

/** Yields one delta, then waits until the caller leaves. */
async function* endless(_: unknown, call: RequestContext): AsyncGenerator<GenerateEvent> {
  yield { type: "delta", text: "a" };
  await waiting(_, call);
}

async function waiting(_: unknown, { signal }: RequestContext): Promise<never> {
  started.resolve();
  await new Promise<void>((resolve) => onAbort(signal, resolve));
  ended.resolve("aborted");
  throw new CallerGone();
}

async function* flood(): AsyncGenerator<GenerateEvent> {
  let isComplete = false;
  try {
    for (let i = 0; i < 1_000; i++) yield { type: "delta", text: "x".repeat(100_000) };
    isComplete = true;
    yield { type: "done", done: create(StreamGenerateResponse_DoneSchema) };
  } finally {
    ended.resolve(isComplete ? "complete" : "aborted");
  }
}

function openHttp2(
  t: Lifetime,
  url: string,
  path: string,
  type: string,
  headers: Record<string, string> = {},
): ClientHttp2Stream {
  const session = connectHttp2(url);
  session.on("error", () => undefined);
  t.onTestFinished(() => session.destroy());
  return session.request({ ":method": "POST", ":path": path, "content-type": type, te: "trailers", ...headers });
}
