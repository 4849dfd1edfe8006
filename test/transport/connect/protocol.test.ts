import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { test, vi } from "vitest";
import { type FailureDetail, FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  GenerateResponseSchema,
  GenerationService,
  QuotasResponseSchema,
  StreamGenerateResponse_DoneSchema,
  StreamGenerateResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { onAbort } from "../../../src/concurrency/abort.ts";
import { CallerGone } from "../../../src/contract/endings.ts";
import { Failure } from "../../../src/contract/failure.ts";
import type { GenerateEvent, RequestContext } from "../../../src/generate/request-context.ts";
import { envelope, grpcCall } from "../../helpers/grpc.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { rpcFailure, serveRpc, statusDetail, transports } from "../../helpers/rpc.ts";

const GENERATE = "/chorus.v1.GenerationService/Generate";
const STREAM = "/chorus.v1.GenerationService/StreamGenerate";
const generateWhole = async () => create(GenerateResponseSchema, { answer: "ok" });
const REQUEST = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { prompt: "a" }));

test("refuses what breaks the protocol with a FailureDetail and without the parser's text", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const json = { "Content-Type": "application/json" };
  const proto = { "Content-Type": "application/proto" };
  const text = { "Content-Type": "text/plain" };
  const cases: [path: string, headers: Record<string, string>, body: string, status: number, code: string][] = [
    ["/nope", json, "{}", 404, "not_found"],
    [GENERATE, text, "{}", 415, "unsupported_media_type"],
    [GENERATE, { "Content-Type": "application/connect+json" }, "{}", 415, "unsupported_media_type"],
    [GENERATE, { "Content-Type": "application/connect+proto" }, "{}", 415, "unsupported_media_type"],
    [STREAM, json, "{}", 415, "unsupported_media_type"],
    [STREAM, proto, "{}", 415, "unsupported_media_type"],
    [GENERATE, { ...json, "Content-Encoding": "secret" }, "{}", 501, "unsupported_media_type"],
    [GENERATE, { ...json, "Connect-Timeout-Ms": "secret" }, "{}", 400, "invalid_request"],
    [GENERATE, { ...json, "Connect-Timeout-Ms": "-1" }, "{}", 400, "invalid_request"],
    [GENERATE, json, '{"secret', 400, "invalid_json"],
    [GENERATE, json, "", 400, "invalid_json"],
    [GENERATE, json, "[]", 400, "invalid_json"],
    [GENERATE, json, '{"temperature":"secret"}', 400, "invalid_request"],
    [GENERATE, proto, "\u000a\u007fsecret", 400, "invalid_request"],
  ];
  for (const [path, headers, body, status, code] of cases) {
    const raw = await openRaw(t, url);
    raw.send(head("POST", path, { ...headers, "Content-Length": body.length }) + body);
    const response = await raw.read();
    assert.equal(response.status, status, `${path} ${body}`);
    assert.equal(response.headers["content-type"], "application/json");
    const { message, details } = JSON.parse(response.body);
    assert.equal(details[0].debug.code, code, body);
    assert.equal(details[0].debug.requestId, response.headers["x-request-id"]);
    assert.doesNotMatch(response.body, /secret|JSON at|parse|varint/);
    assert.notEqual(message, "");
  }
  for (const type of [json, { "Content-Type": "application/connect+json" }]) {
    const raw = await openRaw(t, url);
    raw.send(head("DELETE", GENERATE, { ...type, "Content-Length": 0 }));
    const response = await raw.read();
    assert.deepEqual([response.status, response.headers.allow], [405, "POST"]);
    assert.equal(JSON.parse(response.body).details[0].debug.code, "method_not_allowed");
  }
});

test("names the field of a JSON request that has the wrong type", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const raw = await openRaw(t, url);
  const body = '{"maxTokens":"many"}';
  raw.send(head("POST", GENERATE, { "Content-Type": "application/json", "Content-Length": body.length }) + body);
  const { details } = JSON.parse((await raw.read()).body);
  assert.deepEqual([details[0].debug.code, details[0].debug.field], ["invalid_request", "max_tokens"]);
});

test("takes null, an empty string and an empty list in JSON for an absent field", async (t) => {
  const received: unknown[] = [];
  const { url } = await serveRpc(t, {
    generation: {
      generateWhole: async (request) => {
        received.push(request);
        return create(GenerateResponseSchema, { answer: "ok" });
      },
    },
  });
  for (const empty of [null, "", []]) {
    const fields = ["system", "messages", "attachments", "effort", "temperature", "maxTokens", "stopSequences"];
    const others = ["outputShape", "responseFormat", "webSearch", "intelligenceTrace", "continue"];
    const members = [...fields, ...others].map((name) => [name, empty]);
    const response = await fetch(url + GENERATE, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ prompt: "a", ...Object.fromEntries(members) }),
    });
    assert.equal(response.status, 200, await response.text());
  }
  const expected = create(GenerateRequestSchema, { prompt: "a" });
  for (const request of received) assert.ok(equals(GenerateRequestSchema, request as GenerateRequest, expected));
  assert.equal(received.length, 3);
});

test("reports unknown members of a JSON request, and accepts both names of a field", async (t) => {
  const seen: unknown[] = [];
  const note = (context: RequestContext) => void seen.push(context.notices.map(({ code, field }) => [code, field]));
  const { url } = await serveRpc(t, {
    generation: {
      async generateWhole(_, context) {
        note(context);
        return create(GenerateResponseSchema);
      },
      async *generate(_, context) {
        note(context);
        yield { type: "done", done: create(StreamGenerateResponse_DoneSchema) };
      },
    },
  });
  const body = {
    messages: [{ role: "ROLE_USER", content: "a", name: "b" }],
    response_format: { text: { strict: true } },
    maxTokens: 1,
    stop_sequences: ["a"],
    model: null,
    system: "",
  };
  for (const system of ["", "a".repeat(20_000)]) {
    const text = JSON.stringify({ ...body, system });
    const json = { "Content-Type": "application/json" };
    assert.equal((await fetch(url + GENERATE, { method: "POST", headers: json, body: text })).status, 200);
    const connect = { "Content-Type": "application/connect+json" };
    const stream = await fetch(url + STREAM, {
      method: "POST",
      headers: connect,
      body: new Uint8Array(envelope(text)),
    });
    await stream.text();
    const type = { "content-type": "application/grpc+json" };
    assert.equal((await grpcCall(t, url, GENERATE, type, envelope(text))).trailers["grpc-status"], "0");
  }
  const fields = ["messages[0].name", "response_format.text.strict", "model"];
  const expected = fields.map((field) => ["unknown_field", field]);
  assert.deepEqual(seen, Array(6).fill(expected));
});

test("sends the same failures in the trailers of gRPC and in the end of a stream", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const cases: [path: string, headers: Record<string, string>, body: Buffer, status: string, code: string][] = [
    ["/nope", {}, envelope(REQUEST), "12", "not_found"],
    [GENERATE, { "grpc-encoding": "gzip" }, envelope(REQUEST), "12", "unsupported_media_type"],
    [GENERATE, {}, envelope(REQUEST, 1), "12", "unsupported_media_type"],
    [GENERATE, { "grpc-timeout": "secret" }, envelope(REQUEST), "3", "invalid_request"],
    [GENERATE, {}, Buffer.alloc(0), "3", "invalid_request"],
    [GENERATE, {}, envelope(REQUEST).subarray(0, 6), "3", "invalid_request"],
    [GENERATE, {}, Buffer.concat([envelope(REQUEST), envelope(REQUEST)]), "3", "invalid_request"],
    [GENERATE, {}, envelope("\u000a\u007fsecret"), "3", "invalid_request"],
  ];
  for (const [path, headers, body, status, code] of cases) {
    const { trailers } = await grpcCall(t, url, path, headers, body);
    assert.equal(trailers["grpc-status"], status, code);
    assert.equal(detailOf(trailers).code, code);
    assert.doesNotMatch(String(trailers["grpc-message"]), /secret/);
  }

  const raw = await openRaw(t, url);
  const body = envelope("{}", 1);
  raw.send(head("POST", STREAM, { "Content-Type": "application/connect+json", "Content-Length": body.length }));
  raw.send(body);
  const response = await raw.read();
  assert.equal(response.status, 200);
  assert.match(response.body, /"code":"unimplemented".*"code":"unsupported_media_type"/);
});

test("names the supported encodings when it refuses a compressed request", async (t) => {
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  const connect = async (path: string, type: string, headers: Record<string, string>, body: Buffer) => {
    const raw = await openRaw(t, url);
    raw.send(head("POST", path, { "Content-Type": type, ...headers, "Content-Length": body.length }));
    raw.send(body);
    return raw.read();
  };
  const unary = await connect(GENERATE, "application/json", { "Content-Encoding": "gzip" }, Buffer.from("{}"));
  assert.deepEqual([unary.status, unary.headers["accept-encoding"]], [501, "identity"]);
  assert.match(unary.body, /"message":"[^"]*identity/);
  for (const [headers, flags] of [
    [{ "Connect-Content-Encoding": "gzip" }, 0],
    [{}, 1],
  ] as const) {
    const stream = await connect(STREAM, "application/connect+json", headers, envelope("{}", flags));
    assert.deepEqual([stream.status, stream.headers["connect-accept-encoding"]], [200, "identity"]);
    assert.match(stream.body, /"message":"[^"]*identity/);
    const web = { "grpc-encoding": "gzip" };
    const grpcWeb = await connect(GENERATE, "application/grpc-web", flags === 0 ? web : {}, envelope(REQUEST, flags));
    assert.deepEqual([grpcWeb.status, grpcWeb.headers["grpc-accept-encoding"]], [200, "identity"]);
  }
  const { headers, trailers } = await grpcCall(t, url, GENERATE, { "grpc-encoding": "gzip" }, envelope(REQUEST));
  assert.deepEqual([headers["grpc-accept-encoding"], trailers["grpc-status"]], ["identity", "12"]);
  const other = await grpcCall(t, url, GENERATE, { "grpc-timeout": "x" }, envelope(REQUEST));
  assert.equal(other.headers["grpc-accept-encoding"], undefined);
});

test("encodes in grpc-message only what the protocol requires", async (t) => {
  const messages: [message: string, sent: string][] = [
    ['temperature must be "low": 1/2, [3] {4} ~!', 'temperature must be "low": 1/2, [3] {4} ~!'],
    ["100% of 5 €, größer\n\u007f", "100%25 of 5 %E2%82%AC, gr%C3%B6%C3%9Fer%0A%7F"],
  ];
  for (const [message, sent] of messages) {
    const fail = async () => {
      throw new Failure("invalid_request", { message });
    };
    const { url } = await serveRpc(t, { generation: { generateWhole: fail } });
    const { trailers } = await grpcCall(t, url, GENERATE, {}, envelope(REQUEST));
    assert.equal(trailers["grpc-message"], sent);
    for (const [name, transport] of Object.entries(transports(url))) {
      const failure = await rpcFailure(createClient(GenerationService, transport).generate({ prompt: "a" }));
      assert.equal(failure.message, message, name);
    }
  }
});

test("ends a gRPC stream at the caller's deadline, with the text before it", async (t) => {
  async function* generate(_: unknown, { signal }: RequestContext): AsyncGenerator<GenerateEvent> {
    yield { type: "delta", text: "a" };
    await new Promise<void>((resolve) => onAbort(signal, resolve));
    throw new CallerGone();
  }
  const { url } = await serveRpc(t, { generation: { generate } });
  const { body, trailers } = await grpcCall(t, url, STREAM, { "grpc-timeout": "50m" }, envelope(REQUEST));
  const { event } = fromBinary(StreamGenerateResponseSchema, body.subarray(5));
  assert.deepEqual([event.case, trailers["grpc-status"], detailOf(trailers).code], ["delta", "4", "timed_out"]);
  const watch = await grpcCall(t, url, "/grpc.health.v1.Health/Watch", { "grpc-timeout": "50m" }, envelope(""));
  assert.equal(watch.trailers["grpc-status"], "4");
});

test("serves Connect's GET requests of methods without side effects", async (t) => {
  const { url } = await serveRpc(t, { quotas: async () => create(QuotasResponseSchema, { workspace: "w" }) });
  const raw = await openRaw(t, url);
  const path = "/chorus.v1.GenerationService/Quotas";
  const statuses: number[] = [];
  for (const query of [
    "?encoding=json&message=%7B%7D",
    "?encoding=json&message=e30&base64=1&connect=v1",
    "?encoding=proto&message=",
    "?encoding=json&message=%7B",
    "?encoding=json&message=%7B%7D&compression=gzip",
    "?encoding=xml",
    "",
  ]) {
    raw.send(head("GET", path + query, {}));
    statuses.push((await raw.read()).status);
  }
  assert.deepEqual(statuses, [200, 200, 200, 400, 501, 415, 415]);
  raw.send(head("GET", GENERATE, {}));
  assert.equal((await raw.read()).status, 405);
});

test("writes the messages of one turn together and keeps their order", async (t) => {
  const count = 1_500;
  const { url } = await serveRpc(t, {
    generation: {
      async *generate(): AsyncGenerator<GenerateEvent> {
        for (let i = 0; i < count; i++) yield { type: "delta", text: `${i} ` };
        yield { type: "done", done: create(StreamGenerateResponse_DoneSchema, { id: "gen_1" }) };
      },
    },
  });
  const expected = Array.from({ length: count }, (_, i) => `${i} `).join("");
  for (const [name, transport] of Object.entries(transports(url))) {
    let text = "";
    let id = "";
    for await (const { event } of createClient(GenerationService, transport).streamGenerate({ prompt: "a" })) {
      if (event.case === "delta") text += event.value.text;
      if (event.case === "done") id = event.value.id;
    }
    assert.ok(text === expected && id === "gen_1", name);
  }
});

test("sends the messages before a failure, then the failure", async (t) => {
  const { url } = await serveRpc(t, {
    generation: {
      async *generate(): AsyncGenerator<GenerateEvent> {
        yield { type: "delta", text: "a" };
        throw new Error("secret");
      },
    },
  });
  const { body, trailers } = await grpcCall(t, url, STREAM, {}, envelope(REQUEST));
  const { event } = fromBinary(StreamGenerateResponseSchema, body.subarray(5));
  assert.deepEqual([event.case, trailers["grpc-status"]], ["delta", "13"]);
});

test("fails calls whose bodies stop, over HTTP/2, and gives their memory back", async (t) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  t.onTestFinished(() => void vi.useRealTimers());
  const bodyBudgetBytes = 64 * 1024 * 1024;
  const { url } = await serveRpc(t, { generation: { generateWhole } }, { bodyBudgetBytes });
  const session = connectHttp2(url);
  t.onTestFinished(() => session.destroy());
  const idle = Array.from({ length: 10 }, () => {
    const stream = session.request({
      ":method": "POST",
      ":path": GENERATE,
      "content-type": "application/grpc",
      // The server continues once it reads the body.
      expect: "100-continue",
      "content-length": 6_000_000,
    });
    return { reads: once(stream, "continue"), stream };
  });
  await Promise.all(idle.map(({ reads }) => reads));
  const ended = idle.map(({ stream }) => once(stream.resume(), "trailers"));
  vi.advanceTimersByTime(12_000);
  for (const [trailers] of await Promise.all(ended)) assert.equal(trailers["grpc-status"], "4");
  session.destroy();
  const raw = await openRaw(t, url);
  const headers = { "Content-Type": "application/proto", "Content-Length": 40_000_000, Expect: "100-continue" };
  raw.send(head("POST", GENERATE, headers));
  assert.equal((await raw.read()).status, 100);
});

/** Returns the FailureDetail of a gRPC response. */
function detailOf(trailers: Record<string, unknown>): FailureDetail {
  return statusDetail(Buffer.from(String(trailers["grpc-status-details-bin"]), "base64"), FailureDetailSchema);
}
