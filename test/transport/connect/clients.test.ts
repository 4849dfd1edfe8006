import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import { test } from "vitest";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type GenerateResponse,
  GenerateResponseSchema,
  GenerationService,
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import type { Pool } from "../../../src/store/pool.ts";
import { testDatabase } from "../../helpers/database.ts";
import { rpcFailure, statusDetail, transports } from "../../helpers/rpc.ts";
import { startService } from "../../helpers/service.ts";
import { until } from "../../helpers/until.ts";
import { startVendor } from "../../helpers/vendors.ts";

const execute = promisify(execFile);
const BUF = join(resolve(import.meta.dirname, "../../.."), "node_modules/.bin/buf");
const GENERATE = "/chorus.v1.GenerationService/Generate";
const STREAM = "/chorus.v1.GenerationService/StreamGenerate";

test("buf curl lists and calls every method through reflection", async (t) => {
  const service = await startService(t);
  // The calls run concurrently because each starts a process.
  const curl = async (...args: string[]): Promise<string> => {
    const { stdout } = await execute(BUF, ["curl", ...args], { env: { ...process.env, HOME: service.dataDir } });
    return stdout;
  };
  const call = (method: string, ...args: string[]) =>
    curl(...args, "-H", `x-api-key: ${service.apiKey}`, `${service.rpcUrl}/chorus.v1.GenerationService/${method}`);
  const data = ["-d", '{"prompt": "What is 6 * 7?"}'];
  const protocols = [
    ["--protocol", "connect"],
    ["--protocol", "connect", "--http2-prior-knowledge"],
    ["--protocol", "grpc", "--http2-prior-knowledge"],
    ["--protocol", "grpcweb"],
  ];
  await Promise.all([
    curl("--list-methods", service.rpcUrl).then((listed) => {
      for (const { name } of GenerationService.methods) {
        assert.ok(listed.split("\n").includes(`chorus.v1.GenerationService/${name}`), listed);
      }
    }),
    ...protocols.map((protocol) =>
      call("Generate", ...protocol, ...data).then((answer) => assert.equal(JSON.parse(answer).answer, "6 * 7 = 42")),
    ),
    ...protocols.slice(1, 3).map((protocol) =>
      call("StreamGenerate", ...protocol, ...data).then((events) => {
        const texts = [...events.matchAll(/"text": (".*")/g)].map(([, text = ""]) => JSON.parse(text));
        assert.equal(texts.join(""), "6 * 7 = 42");
        assert.match(events, /"finishReason": "FINISH_REASON_STOP"/);
      }),
    ),
    call("Quotas").then((answer) => assert.equal(JSON.parse(answer).workspace, "default")),
    call("Metrics", "--protocol", "grpc", "--http2-prior-knowledge").then((answer) =>
      assert.equal(JSON.parse(answer).interval, "METRICS_INTERVAL_DAY"),
    ),
    assert.rejects(call("Generate", "--protocol", "grpc", "--http2-prior-knowledge", "-d", "{}"), ({ stderr }) => {
      const { code, details } = JSON.parse(stderr);
      assert.deepEqual([code, details[0].type], ["invalid_argument", "chorus.v1.FailureDetail"]);
      return true;
    }),
  ]);
});

test("grpc-js makes unary and streaming calls and reads the details of a failure", async (t) => {
  const service = await startService(t);
  const client = new grpc.Client(new URL(service.rpcUrl).host, grpc.credentials.createInsecure());
  t.onTestFinished(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set("x-api-key", service.apiKey);

  const response = await unary(client, GENERATE, { prompt: "What is 6 * 7?" }, metadata);
  assert.equal(response.answer, "6 * 7 = 42");

  const stream = streaming(client, { prompt: "What is 6 * 7?" }, metadata);
  const cases: (string | undefined)[] = [];
  for await (const message of stream) cases.push((message as StreamGenerateResponse).event.case);
  assert.equal(cases.at(-1), "done");
  assert.ok(cases.length > 2 && cases.slice(0, -1).every((name) => name === "delta"));

  const invalid = await unary(client, GENERATE, { prompt: "a", maxTokens: 0 }, metadata).catch((error) => error);
  assert.equal(invalid.code, grpc.status.INVALID_ARGUMENT);
  const { code, field, requestId } = detailOf(invalid, FailureDetailSchema);
  assert.deepEqual([code, field], ["invalid_request", "max_tokens"]);
  assert.match(requestId, /^req_/);
  const info = detailOf(invalid, ErrorInfoSchema);
  assert.deepEqual([info.reason, info.domain, info.metadata.request_id], ["INVALID_REQUEST", "chorus", requestId]);
  const [violation] = detailOf(invalid, BadRequestSchema).fieldViolations;
  assert.deepEqual([violation?.field, violation?.description], ["max_tokens", invalid.details]);

  const refused = streaming(client, { prompt: "a" }, new grpc.Metadata());
  const [error] = await once(refused.resume(), "error");
  assert.equal(error.code, grpc.status.UNAUTHENTICATED);
  assert.equal(detailOf(error, FailureDetailSchema).code, "unauthenticated");

  const unknown = await unary(client, `${GENERATE}Nope`, {}, metadata).catch((failure) => failure);
  assert.equal(unknown.code, grpc.status.UNIMPLEMENTED);
});

test("charges a caller who leaves a stream for the text written, and aborts the vendor call", async (t) => {
  const pieces = Array.from({ length: 200 }, (_, i) => `word${i} `);
  const vendor = await startVendor("openai", { text: pieces, end: "hang", after: 3 });
  t.onTestFinished(() => vendor.close());
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: vendor.env });
  const headers = { "x-api-key": service.apiKey };

  for (const [name, transport] of Object.entries(transports(service.rpcUrl))) {
    const client = createClient(GenerationService, transport);
    const leave = new AbortController();
    let text = "";
    for await (const { event } of client.streamGenerate({ prompt: name }, { headers, signal: leave.signal })) {
      if (event.case === "delta") text += event.value.text;
      if (text === "word0 word1 word2 ") break;
    }
    leave.abort();
    assert.equal(await vendor.calls.at(-1)?.ended, "aborted", name);
    const row = await lastGeneration(pool);
    assert.equal(row.outcome, "caller_gone");
    assert.ok(row.output_tokens > 0n && row.output_tokens < 20n, `${name}: ${row.output_tokens}`);
    assert.equal(row.credits_micro, row.input_tokens * 100n + row.output_tokens * 400n);
  }

  const grpcClient = new grpc.Client(new URL(service.rpcUrl).host, grpc.credentials.createInsecure());
  t.onTestFinished(() => grpcClient.close());
  const metadata = new grpc.Metadata();
  metadata.set("x-api-key", service.apiKey);
  const stream = streaming(grpcClient, { prompt: "a" }, metadata);
  stream.on("error", () => undefined);
  await once(stream, "data");
  stream.cancel();
  assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
  assert.equal((await lastGeneration(pool)).outcome, "caller_gone");

  // A unary call that the caller leaves is not charged.
  vendor.always({ end: "silent" });
  const client = createClient(GenerationService, transports(service.rpcUrl).gRPC);
  const late = await rpcFailure(client.generate({ prompt: "a" }, { headers, timeoutMs: 2_000 }));
  assert.equal(late.code, "DeadlineExceeded");
  assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
  const row = await lastGeneration(pool);
  assert.deepEqual([row.outcome, row.output_tokens, row.credits_micro], ["caller_gone", 0n, 0n]);
  assert.doesNotMatch(service.output(), /could not send|request failed/);
});

test("charges a stalled reader for the text written", async (t) => {
  const vendor = await startVendor("openai", { text: Array.from({ length: 300 }, () => "lorem ipsum ".repeat(200)) });
  t.onTestFinished(() => vendor.close());
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: { ...vendor.env, CHORUS_STREAM_MS: '{"stallMs":200}' } });

  const session = connectHttp2(service.rpcUrl);
  t.onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": STREAM,
    "content-type": "application/grpc",
    "x-api-key": service.apiKey,
  });
  stream.on("error", () => undefined);
  const request = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { prompt: "a" }));
  stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, request.length]), request]));
  await once(stream, "response");
  const row = await lastGeneration(pool);
  assert.equal(row.outcome, "caller_gone");
  // The HTTP/2 flow control window of 64 kB bounds the text written.
  assert.ok(row.output_tokens > 5_000n && row.output_tokens < 30_000n, String(row.output_tokens));
  assert.equal(row.credits_micro, row.input_tokens * 100n + row.output_tokens * 400n);
});

interface Row {
  outcome: string;
  input_tokens: bigint;
  output_tokens: bigint;
  credits_micro: bigint;
}

const counts = new WeakMap<Pool, number>();

/** The record of the newest request. Waits for it, because it is written after the caller has left. */
async function lastGeneration(pool: Pool): Promise<Row> {
  let rows: Row[] = [];
  await until(async () => {
    rows = await pool.query<Row>("select * from generations order by created_at");
    return rows.length > (counts.get(pool) ?? 0);
  });
  counts.set(pool, rows.length);
  return rows.at(-1) ?? assert.fail();
}

const serialize = (request: GenerateRequest) => Buffer.from(toBinary(GenerateRequestSchema, request));

function unary(
  client: grpc.Client,
  path: string,
  request: MessageInitShape<typeof GenerateRequestSchema>,
  metadata: grpc.Metadata,
): Promise<GenerateResponse> {
  return new Promise((resolve, reject) => {
    const parse = (bytes: Buffer) => fromBinary(GenerateResponseSchema, bytes);
    const message = create(GenerateRequestSchema, request);
    client.makeUnaryRequest(path, serialize, parse, message, metadata, (error, response) =>
      response ? resolve(response) : reject(error),
    );
  });
}

function streaming(
  client: grpc.Client,
  request: MessageInitShape<typeof GenerateRequestSchema>,
  metadata: grpc.Metadata,
): grpc.ClientReadableStream<StreamGenerateResponse> {
  const parse = (bytes: Buffer) => fromBinary(StreamGenerateResponseSchema, bytes);
  return client.makeServerStreamRequest(STREAM, serialize, parse, create(GenerateRequestSchema, request), metadata);
}

function detailOf<D extends DescMessage>(error: grpc.ServiceError, schema: D): MessageShape<D> {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  return statusDetail(bytes as Buffer, schema);
}
