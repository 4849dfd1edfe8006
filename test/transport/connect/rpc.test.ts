import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { KeyService, Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import {
  type Effort,
  FinishReason,
  GenerateResponseSchema,
  GenerationService,
  OutputShape,
  Role,
} from "../../../gen/chorus/v1/generation_pb.js";
import { FAILURES, Failure, type FailureKind } from "../../../src/contract/failure.ts";
import { adminOf } from "../../helpers/admin.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";
import { rpcFailure, serveRpc, TRANSPORTS, transports } from "../../helpers/rpc.ts";

const test = base
  .extend("env", { scope: "file" }, OFFLINE)
  .extend("client", ({ service }) => createClient(GenerationService, transports(service.rpcUrl).gRPC));

test.for(TRANSPORTS)("calls every method over %s", async (name, { service }) => {
  const headers = { "x-api-key": service.apiKey };
  const client = createClient(GenerationService, transports(service.rpcUrl)[name]);
  const seen = new Headers();
  const onHeader = (header: Headers) => header.forEach((value, key) => void seen.set(key, value));
  const response = await client.generate({ prompt: "What is 6 * 7?" }, { headers, onHeader });
  assert.equal(response.answer, "6 * 7 = 42");
  assert.equal(response.finishReason, FinishReason.STOP);
  assert.equal(seen.get("x-request-id"), response.requestId);

  let text = "";
  const ends: string[] = [];
  for await (const { event } of client.streamGenerate({ prompt: "What is 6 * 7?" }, { headers })) {
    if (event.case === "delta") text += event.value.text;
    else if (event.case === "done") ends.push(event.value.id);
  }
  assert.equal(text, "6 * 7 = 42");
  assert.match(ends.join(), /^gen_[0-9a-f]+$/);

  const quotas = await client.quotas({}, { headers });
  assert.equal(quotas.workspace, "default");
  const metrics = await client.metrics({}, { headers });
  assert.ok((metrics.totals?.requests ?? 0n) >= 2n);

  const bearer = { authorization: `Bearer ${service.apiKey}` };
  assert.equal((await client.quotas({}, { headers: bearer })).workspace, "default");
  const none = await rpcFailure(client.generate({ prompt: "Hello" }));
  assert.deepEqual([none.code, none.detail?.code], ["Unauthenticated", "unauthenticated"]);
  assert.match(none.detail?.requestId ?? "", /^req_/);
  const stream = await rpcFailure(client.streamGenerate({ prompt: "Hello" }));
  assert.deepEqual([stream.code, stream.detail?.code], ["Unauthenticated", "unauthenticated"]);
});

test("refuses a key without the scope of the method", async ({ database: { pool }, client }) => {
  const { keys } = adminOf(pool);
  const { secret: generate } = await keys.createKey({ workspace: "default", scopes: [Scope.GENERATE] });
  const { secret: metrics } = await keys.createKey({ workspace: "default", scopes: [Scope.METRICS] });
  const calls = [
    client.quotas({}, { headers: { "x-api-key": generate } }),
    client.metrics({}, { headers: { "x-api-key": generate } }),
    client.generate({ prompt: "Hello" }, { headers: { "x-api-key": metrics } }),
    client.streamGenerate({ prompt: "Hello" }, { headers: { "x-api-key": metrics } }),
  ];
  for (const { code, detail } of await Promise.all(calls.map((call) => rpcFailure(call))))
    assert.deepEqual([code, detail?.code], ["PermissionDenied", "missing_scope"]);
  assert.equal((await client.quotas({}, { headers: { "x-api-key": metrics } })).workspace, "default");
});

test("names an invalid field", async ({ service, client }) => {
  const headers = { "x-api-key": service.apiKey };
  const schema = '{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}';
  const formatOf = (schema: string) => ({ format: { case: "jsonSchema" as const, value: { schema } } });
  const responseFormat = formatOf(schema);
  const cases: [request: Parameters<typeof client.generate>[0], field: string, code?: string][] = [
    [{}, "prompt"],
    [{ prompt: "a", messages: [{ role: Role.USER, content: "b" }] }, "prompt"],
    [{ messages: [{ role: Role.USER, content: "a" }, { content: "b" }] }, "messages[1].role"],
    [{ messages: [{ role: 77 as Role, content: "a" }] }, "messages[0].role"],
    [{ prompt: "a", temperature: 2.1 }, "temperature"],
    [{ prompt: "a", temperature: Number.NaN }, "temperature"],
    [{ prompt: "a", maxTokens: 0 }, "max_tokens"],
    [{ prompt: "a", effort: 99 as Effort }, "effort"],
    [{ prompt: "a", outputShape: 99 as OutputShape }, "output_shape"],
    [{ prompt: "a", stopSequences: ["a", ""] }, "stop_sequences[1]"],
    [{ prompt: "a", attachments: [{ mediaType: "image/tiff" }] }, "attachments[0].media_type"],
    [{ prompt: "a", continueLastMessage: true }, "continue"],
    [{ prompt: "a", responseFormat: {} }, "response_format"],
    [{ prompt: "a", responseFormat: formatOf("{}"), outputShape: OutputShape.EXTRACT }, "output_shape"],
    [{ prompt: "a", responseFormat }, "response_format.schema.properties.a", "invalid_response_schema"],
  ];
  for (const [request, field, kind = "invalid_request"] of cases) {
    const { code, detail } = await rpcFailure(client.generate(request, { headers }));
    assert.deepEqual([code, detail?.code, detail?.field], ["InvalidArgument", kind, field]);
  }
  const streamed = await rpcFailure(client.streamGenerate({ prompt: "a", responseFormat }, { headers }));
  assert.equal(streamed.detail?.code, "structured_output_streaming_not_supported");
});

test("accepts only an operator token for the key service", async ({ service, client }) => {
  const operator = createClient(KeyService, transports(service.rpcUrl).gRPC);
  for (const authorization of ["", "Bearer nope", service.operatorToken, `Bearer ${service.apiKey}`]) {
    const { code, detail } = await rpcFailure(
      operator.listKeys({}, { headers: { authorization, "x-api-key": service.apiKey } }),
    );
    assert.deepEqual([code, detail?.code], ["Unauthenticated", "unauthenticated"]);
  }
  const token = { headers: { authorization: `Bearer ${service.operatorToken}` } };
  const workspace = "default";
  const { key, secret } = await operator.createKey({ workspace, name: "a", scopes: [Scope.METRICS] }, token);
  assert.deepEqual([key?.name, key?.scopes, secret.startsWith(key?.prefix ?? "?")], ["a", [Scope.METRICS], true]);
  const names: string[] = [];
  for (let pageToken = ""; ; ) {
    const page = await operator.listKeys({ workspace, pageSize: 2, pageToken }, token);
    assert.ok(page.keys.length <= 2);
    names.push(...page.keys.map((listed) => listed.name));
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  assert.deepEqual([names[0], names.at(-1)], ["a", "bootstrap"]);

  const wrong: [() => Promise<unknown>, string, string][] = [
    [() => operator.createKey({}, token), "InvalidArgument", "workspace"],
    [() => operator.createKey({ workspace: "nope" }, token), "NotFound", "workspace"],
    [
      () => operator.createKey({ workspace, scopes: [Scope.GENERATE, 9 as Scope] }, token),
      "InvalidArgument",
      "scopes[1]",
    ],
    [() => operator.createKey({ workspace, expiresAt: { seconds: 1n } }, token), "InvalidArgument", "expires_at"],
    [() => operator.createKey({ workspace, name: "\u001b[31m" }, token), "InvalidArgument", "name"],
    [() => operator.listKeys({ pageSize: -1 }, token), "InvalidArgument", "page_size"],
    [() => operator.listKeys({ pageToken: "nope" }, token), "InvalidArgument", "page_token"],
    [() => operator.revokeKey({ id: "key_nope" }, token), "NotFound", "id"],
  ];
  for (const [call, code, field] of wrong) {
    const failure = await rpcFailure(call());
    assert.deepEqual([failure.code, failure.detail?.field], [code, field]);
  }
  assert.ok((await operator.revokeKey({ id: key?.id ?? "" }, token)).key?.revokedAt);
  const revoked = await rpcFailure(client.quotas({}, { headers: { "x-api-key": secret } }));
  assert.equal(revoked.code, "Unauthenticated");
});

test("sends the Connect code and the details of every failure, unary and streamed", async ({ t }) => {
  let kind: FailureKind = "internal";
  const fail = () => {
    throw new Failure(kind, {
      field: "messages[3].role",
      limit: "requests_per_minute",
      retryAfterMs: 1_500.2,
      cause: new Error("secret"),
    });
  };
  const { url } = await serveRpc(t, {
    generation: {
      generateWhole: async () => fail(),
      // biome-ignore lint/correctness/useYield: the stream fails before its first event
      generate: async function* () {
        fail();
      },
    },
  });
  const { "Connect over HTTP/1.1": connect, gRPC, "gRPC-Web over HTTP/1.1": grpcWeb } = transports(url);
  for (const transport of [connect, gRPC, grpcWeb]) {
    const client = createClient(GenerationService, transport);
    for (kind of Object.keys(FAILURES) as FailureKind[]) {
      const row = FAILURES[kind];
      for (const call of [client.generate({ prompt: "a" }), client.streamGenerate({ prompt: "a" })]) {
        const { code, message, detail, info, retry, badRequest, metadata } = await rpcFailure(call);
        assert.equal(code, Code[row.connect], kind);
        assert.equal(message, row.message);
        assert.equal(detail?.code, "code" in row ? row.code : "");
        assert.deepEqual([detail.field, detail.limit], ["messages[3].role", "requests_per_minute"]);
        assert.equal(detail.retryAfterMs, 1_501n);
        assert.match(detail.requestId, /^req_[0-9a-f]{32}$/);
        assert.equal(metadata.get("retry-after"), "2");
        const reason = (detail.code || "rate_limited").toUpperCase();
        assert.deepEqual([info?.reason, info?.domain], [reason, "chorus"]);
        assert.deepEqual(info?.metadata, { request_id: detail.requestId, limit: "requests_per_minute" });
        assert.deepEqual([retry?.retryDelay?.seconds, retry?.retryDelay?.nanos], [1n, 501_000_000]);
        const [violation] = badRequest?.fieldViolations ?? [];
        assert.deepEqual(
          [violation?.field, violation?.description, violation?.reason],
          [detail.field, message, reason],
        );
      }
    }
  }
});

test("states no wait for a limit that no wait mends", async ({ t }) => {
  const generateWhole = async () => {
    throw new Failure("rate_limited", { limit: "input_tokens_per_minute" });
  };
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  for (const transport of Object.values(transports(url))) {
    const failure = await rpcFailure(createClient(GenerationService, transport).generate({ prompt: "a" }));
    const { code, detail, retry, metadata } = failure;
    assert.deepEqual([code, detail?.limit], ["ResourceExhausted", "input_tokens_per_minute"]);
    assert.deepEqual([retry, detail?.retryAfterMs, metadata.get("retry-after")], [undefined, undefined, null]);
  }
});

test("sends the headers of a slow stream at once over each protocol", async ({ t }) => {
  const { url } = await serveRpc(t, {
    generation: {
      async *generate() {
        yield { type: "open" };
        await answer.promise;
        yield { type: "delta", text: "late" };
      },
    },
  });
  let answer = Promise.withResolvers<void>();
  for (const [name, transport] of Object.entries(transports(url))) {
    answer = Promise.withResolvers<void>();
    const cases: unknown[] = [];
    // The answer begins after the headers have arrived.
    const options = { onHeader: () => answer.resolve() };
    for await (const { event } of createClient(GenerationService, transport).streamGenerate({ prompt: "a" }, options))
      cases.push(event.case);
    assert.deepEqual(cases, ["open", "delta"], name);
  }
});

test("sends the headers of a silent stream some time after the admission, over each protocol", async ({ t }) => {
  let answer = Promise.withResolvers<void>();
  const { url } = await serveRpc(
    t,
    {
      generation: {
        async *generate(_, { facts }) {
          facts.admittedAt = performance.now();
          await answer.promise;
          yield { type: "delta", text: "late" };
        },
      },
    },
    { headersMs: 5 },
  );
  for (const [name, transport] of Object.entries(transports(url))) {
    answer = Promise.withResolvers<void>();
    const cases: unknown[] = [];
    // The answer begins after the headers have arrived.
    const options = { onHeader: () => answer.resolve() };
    for await (const { event } of createClient(GenerationService, transport).streamGenerate({ prompt: "a" }, options))
      cases.push(event.case);
    assert.deepEqual(cases, ["delta"], name);
  }
});

test("does not reveal the cause of an unexpected error", async ({ t }) => {
  const generateWhole = async () => {
    throw new TypeError("secret");
  };
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  for (const [name, transport] of Object.entries(transports(url))) {
    const failure = await rpcFailure(createClient(GenerationService, transport).generate({ prompt: "a" }));
    assert.deepEqual([failure.code, failure.detail?.code], ["Internal", "internal"], name);
    assert.doesNotMatch(JSON.stringify([failure.message, [...failure.metadata]]), /secret/);
  }
});

test("delivers the largest answer completely over each protocol", async ({ t }) => {
  const answer = "é€😀\n".repeat(200_000);
  const generateWhole = async () => create(GenerateResponseSchema, { answer });
  const { url } = await serveRpc(t, { generation: { generateWhole } });
  for (const [name, transport] of Object.entries(transports(url))) {
    const response = await createClient(GenerationService, transport).generate({ prompt: "a" });
    assert.ok(response.answer === answer, name);
  }
});
