import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { describe } from "vitest";
import { Effort, GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { type CollectedSpan, startCollector } from "../helpers/collector.ts";
import { faultEnv } from "../helpers/faults.ts";
import { test as base } from "../helpers/fixtures.ts";
import { fixture, type Lifetime } from "../helpers/lifetime.ts";
import { startPanel } from "../helpers/panel.ts";
import { head, openRaw } from "../helpers/raw.ts";
import { transports } from "../helpers/rpc.ts";
import { readEvents, startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startVendor } from "../helpers/vendors.ts";

const PROMPT = "Who sails on the seventh sea?";
const ANSWER = "Nobody but the albatross.";
const CALLER = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;

async function start(t: Lifetime, env: Record<string, string> = {}) {
  const vendor = await startVendor("openai", { text: ANSWER, usage: { input: 20, cached: 4, output: 7 } });
  t.onTestFinished(() => vendor.close());
  const collector = await startCollector(t);
  const service = await startService(t, {
    env: {
      ...vendor.env,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20collector-secret",
      OTEL_BSP_SCHEDULE_DELAY: "20",
      LOG_LEVEL: "info",
      ...env,
    },
  });
  return { vendor, collector, service };
}

/** Span names of a trace as a tree, in start order. */
function tree(spans: CollectedSpan[], parent: CollectedSpan | undefined): unknown[] {
  const children = spans.filter(({ parentSpanId }) => parentSpanId === parent?.spanId);
  const inOrder = children.sort((a, b) => a.startedMs - b.startedMs);
  return inOrder.map((span) => {
    const below = tree(spans, span);
    return below.length > 0 ? [span.name, below] : span.name;
  });
}

async function logLine(service: Pick<TestService, "output">, requestId: string): Promise<Record<string, unknown>> {
  const find = () =>
    service
      .output()
      .split("\n")
      .find((each) => each.startsWith("{") && each.includes(requestId));
  // The log leaves in batches.
  await until(find);
  return JSON.parse(find() ?? "{}");
}

const isServer = ({ kind }: CollectedSpan) => kind === "SERVER";
const isClient = ({ kind }: CollectedSpan) => kind === "CLIENT";

const strong = { effort: "low" };

const test = base
  .extend(
    "tracedOfFile",
    { scope: "file" },
    fixture((t) => start(t)),
  )
  /** A service and the collector of its spans. */
  .extend("traced", ({ tracedOfFile }) => {
    tracedOfFile.vendor.reset();
    tracedOfFile.collector.spans.length = tracedOfFile.collector.requests.length = 0;
    return tracedOfFile;
  });

describe("a service with a trace collector", () => {
  test("continues the caller's trace, exports the spans of a request and propagates the trace to the vendor", async ({
    traced: { vendor, collector, service },
  }) => {
    const headers = { traceparent: TRACEPARENT, tracestate: "shop=aisle9" };
    const response = await service.post("/v1/generate", { prompt: PROMPT, ...strong }, headers);
    assert.equal(response.status, 200);
    const answer = (await response.json()) as { id: string; request_id: string; usage: Record<string, number> };

    const spans = await collector.trace(
      ({ traceId, name }) => traceId === CALLER.traceId && name === "POST /v1/generate",
    );
    const root = spans.find(isServer) ?? assert.fail("no root span");
    const call = spans.find(isClient) ?? assert.fail("no span of a vendor call");
    assert.equal(root.parentSpanId, CALLER.spanId);
    assert.equal(root.traceState, "shop=aisle9");
    assert.equal(root.name, "POST /v1/generate");
    assert.deepEqual(
      (tree(spans, root) as [string]).map((each) => (Array.isArray(each) ? each[0] : each)),
      ["input", "admission", "plan", "settlement"],
    );
    assert.ok(spans.every(({ startedMs, endedMs }) => startedMs >= root.startedMs && endedMs <= root.endedMs));
    assert.ok(spans.every(({ status }) => status === "UNSET"));
    assert.deepEqual(root.resource["service.name"], "chorus");

    const { "chorus.workspace_id": workspace, "chorus.key_id": key, ...rootAttributes } = root.attributes;
    assert.match(String(workspace), /^ws_/);
    assert.match(String(key), /^key_/);
    assert.deepEqual(rootAttributes, {
      "http.request.method": "POST",
      "http.response.status_code": 200,
      "chorus.request_id": response.headers.get("x-request-id"),
      "chorus.generation_id": answer.id,
      "gen_ai.response.id": answer.id,
      "chorus.level": "low",
      "chorus.outcome": "ok",
      "chorus.input_tokens": answer.usage.input_tokens,
      "chorus.output_tokens": answer.usage.output_tokens,
      "chorus.cached_tokens": answer.usage.cached_tokens,
      "chorus.credits": answer.usage.credits,
    });
    const { "gen_ai.request.model": model, ...callAttributes } = call.attributes;
    assert.equal(call.name, `chat ${model}`);
    assert.deepEqual(callAttributes, {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.stream": false,
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.response.model": "scripted",
      "gen_ai.usage.input_tokens": 20,
      "gen_ai.usage.cache_read.input_tokens": 4,
      "gen_ai.usage.output_tokens": 7,
      "chorus.model": "openai-fast",
      "chorus.tier": "fast",
      "chorus.outcome": "ok",
    });
    assert.equal(vendor.calls[0]?.headers.traceparent, `00-${CALLER.traceId}-${call.spanId}-01`);
    // The caller's tracestate is not meant for vendors.
    assert.equal(vendor.calls[0]?.headers.tracestate, undefined);
    assert.equal((await logLine(service, String(rootAttributes["chorus.request_id"]))).trace_id, CALLER.traceId);

    const [request] = collector.requests;
    assert.equal(request?.path, "/v1/traces");
    assert.equal(request?.headers.authorization, "Bearer collector-secret");
    assert.doesNotMatch(
      JSON.stringify(collector.spans),
      new RegExp(`albatross|seventh|${service.apiKey}|vendor-secret`),
    );
  });

  test("exports spans of RPC calls and streams, and starts a trace when the caller sends none", async ({
    traced: { collector, service },
  }) => {
    for (const transport of Object.values(transports(service.rpcUrl)).slice(0, 4)) {
      collector.spans.length = 0;
      const client = createClient(GenerationService, transport);
      const options = { headers: { "x-api-key": service.apiKey } };
      const { requestId } = await client.generate({ prompt: PROMPT, effort: Effort.LOW }, options);
      let streamed = "";
      for await (const { event } of client.streamGenerate({ prompt: PROMPT, effort: Effort.LOW }, options))
        if (event.case === "done") streamed = event.value.requestId;
      for (const [name, id] of [
        ["chorus.v1.GenerationService/Generate", requestId],
        ["chorus.v1.GenerationService/StreamGenerate", streamed],
      ]) {
        const spans = await collector.trace(({ attributes }) => attributes["chorus.request_id"] === id);
        const root = spans.find(isServer) ?? assert.fail();
        assert.equal(root.name, name);
        assert.equal(root.parentSpanId, "");
        assert.equal(root.attributes["chorus.outcome"], "ok");
        assert.equal(spans.filter(isClient).length, 1);
        assert.deepEqual(spans.filter(isClient)[0]?.attributes["gen_ai.usage.output_tokens"], 7);
        assert.equal((await logLine(service, String(id))).trace_id, root.traceId);
      }
      collector.spans.length = 0;
      const headers = { ...options.headers, traceparent: TRACEPARENT };
      await client.quotas({}, { headers });
      const [root] = await collector.trace(({ name }) => name === "chorus.v1.GenerationService/Quotas");
      assert.deepEqual([root?.traceId, root?.parentSpanId], [CALLER.traceId, CALLER.spanId]);
    }
  });

  test("records every attempt of a vendor call and its error", async ({ traced: { vendor, collector, service } }) => {
    collector.spans.length = 0;
    vendor.reply({ status: 500, error: { message: "albatross overboard" } });
    const once = await service.post("/v1/generate", { prompt: PROMPT, ...strong });
    assert.equal(once.status, 200);
    const requestId = once.headers.get("x-request-id");
    const spans = await collector.trace(({ attributes }) => attributes["chorus.request_id"] === requestId);
    const tries = spans.filter(isClient).sort((a, b) => a.startedMs - b.startedMs);
    assert.deepEqual(
      tries.map(({ status, attributes }) => [status, attributes["chorus.outcome"], attributes["error.type"]]),
      [
        ["ERROR", "failed", "ModelError"],
        ["UNSET", "ok", undefined],
      ],
    );
    assert.notEqual(vendor.calls.at(-1)?.headers.traceparent, vendor.calls.at(-2)?.headers.traceparent);

    vendor.always({ status: 400, error: { message: "albatross overboard" } });
    const failed = await service.post("/v1/generate", { prompt: PROMPT, ...strong });
    assert.equal(failed.status, 502);
    const failedId = failed.headers.get("x-request-id");
    const trace = await collector.trace(({ attributes }) => attributes["chorus.request_id"] === failedId);
    const root = trace.find(isServer);
    assert.deepEqual(
      [root?.status, root?.attributes["error.type"], root?.attributes["chorus.outcome"]],
      ["ERROR", "upstream_failed", "upstream_failed"],
    );
    assert.equal(root?.attributes["http.response.status_code"], 502);
    assert.equal(trace.find(({ name }) => name === "plan")?.status, "ERROR");
    assert.doesNotMatch(JSON.stringify(collector.spans), /albatross/);
    vendor.always({ text: ANSWER });
  });

  test("does not mark the span as failed when the caller is at fault", async ({ traced: { collector, service } }) => {
    for (const [path, body, status, type, name] of [
      ["/v1/generate", { prompt: PROMPT, effort: "albatross" }, 422, "invalid_request", "POST /v1/generate"],
      ["/v1/albatross/7", {}, 404, "not_found", "HTTP"],
    ] as const) {
      const refused = await service.post(path, body);
      assert.equal(refused.status, status);
      const requestId = refused.headers.get("x-request-id");
      const spans = await collector.trace(({ attributes }) => attributes["chorus.request_id"] === requestId);
      assert.equal(spans.length, 1);
      assert.deepEqual([spans[0]?.name, spans[0]?.status, spans[0]?.attributes["error.type"]], [name, "UNSET", type]);
    }
    assert.doesNotMatch(JSON.stringify(collector.spans), /albatross/);
  });

  test("records a stream that the caller left", async ({ traced: { vendor, collector, service }, t }) => {
    collector.spans.length = 0;
    vendor.reply({ text: ["One ", "two ", "three "], end: "hang", after: 1 });
    const raw = await openRaw(t, service.url);
    const body = JSON.stringify({ prompt: PROMPT, ...strong });
    const headers = { "X-API-Key": service.apiKey, "Content-Type": "application/json" };
    raw.send(head("POST", "/v1/generate:stream", { ...headers, "Content-Length": Buffer.byteLength(body) }) + body);
    await raw.until("One ");
    raw.socket.destroy();
    const spans = await collector.trace(({ name }) => name === "POST /v1/generate:stream");
    assert.ok(spans.every(({ status }) => status === "UNSET"));
    assert.equal(spans.find(isServer)?.attributes["chorus.outcome"], "caller_gone");
    assert.equal(spans.find(isClient)?.attributes["chorus.outcome"], "left");
    assert.ok(spans.some(({ name }) => name === "settlement"));
  });

  test("honours an unsampled trace, skips health probes and ignores an invalid traceparent", async ({
    traced: { vendor, collector, service },
  }) => {
    collector.spans.length = 0;
    await service.get("/healthz");
    const unsampled = { traceparent: TRACEPARENT.replace(/01$/, "00") };
    assert.equal((await service.post("/v1/generate", { prompt: PROMPT, ...strong }, unsampled)).status, 200);
    assert.match(
      String(vendor.calls.at(-1)?.headers.traceparent),
      new RegExp(`^00-${CALLER.traceId}-[0-9a-f]{16}-00$`),
    );
    const nonsense = { traceparent: `00-${"0".repeat(32)}-zz-01`, tracestate: "=,".repeat(500) };
    const response = await service.post("/v1/generate", { prompt: PROMPT, ...strong }, nonsense);
    const requestId = response.headers.get("x-request-id");
    await collector.trace(({ attributes }) => attributes["chorus.request_id"] === requestId);
    assert.deepEqual(
      collector.spans
        .filter(isServer)
        .map(({ parentSpanId, attributes }) => [parentSpanId, attributes["chorus.request_id"]]),
      [["", requestId]],
    );
  });

  test("keeps the spans of concurrent requests apart when admission and settlement batch them", async ({
    traced: { collector, service },
  }) => {
    collector.spans.length = 0;
    const ids = Array.from({ length: 12 }, async () => {
      const response = await service.post("/v1/generate", { prompt: PROMPT, ...strong });
      return response.headers.get("x-request-id");
    });
    for (const id of await Promise.all(ids)) {
      const spans = await collector.trace(({ attributes }) => attributes["chorus.request_id"] === id);
      const names = tree(spans, spans.find(isServer)).flat(1);
      assert.deepEqual(
        names.filter((name) => typeof name === "string"),
        ["input", "admission", "plan", "settlement"],
      );
      assert.equal(spans.filter(isClient).length, 1);
    }
  });

  test("exports pending spans before the process exits", async ({ t }) => {
    const { collector, service } = await start(t, { OTEL_BSP_SCHEDULE_DELAY: "60000" });
    await service.post("/v1/generate", { prompt: PROMPT, ...strong });
    assert.equal(await service.stop(), 0);
    assert.equal(collector.spans.filter(isServer).length, 1);
  });
});

test("exports the steps of a plan as spans with the vendor calls below them", async ({ t }) => {
  const collector = await startCollector(t);
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/mine`,
    OTEL_BSP_SCHEDULE_DELAY: "20",
    OTEL_SERVICE_NAME: "choir",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=stage",
  };
  const { service, script, ask, stream } = await startPanel(t, env);
  script({
    openai: { write: { text: ANSWER } },
    anthropic: { write: { text: ANSWER } },
    google: { write: { text: ANSWER }, draft: { status: 400, error: { message: "albatross overboard" } } },
  });
  const body = {
    prompt: "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    effort: "high",
  };
  for (const run of [ask, stream]) {
    collector.spans.length = 0;
    await run(body);
    const spans = await collector.trace(({ name }) => name.startsWith("POST /v1/generate"));
    const plan = spans.find(({ name }) => name === "plan") ?? assert.fail("no span named plan");
    const steps = spans.filter(({ parentSpanId }) => parentSpanId === plan.spanId);
    const inOrder = steps.sort((a, b) => a.startedMs - b.startedMs);
    assert.deepEqual(
      inOrder.map(({ name }) => name),
      ["draft", "draft", "draft", "analysis", "write"],
    );
    assert.deepEqual(inOrder.map(({ status }) => status).sort(), ["ERROR", "UNSET", "UNSET", "UNSET", "UNSET"]);
    for (const step of steps) {
      const calls = spans.filter(({ parentSpanId }) => parentSpanId === step.spanId);
      assert.deepEqual(
        calls.map(({ kind }) => kind),
        ["CLIENT"],
        step.name,
      );
      assert.equal(step.attributes["chorus.role"], "strong");
    }
  }
  assert.equal(collector.requests[0]?.path, "/mine");
  const { "service.instance.id": instance, ...resource } = collector.spans[0]?.resource ?? {};
  assert.match(String(instance), /^[0-9a-f-]{36}$/);
  assert.deepEqual(resource, { "service.name": "choir", "deployment.environment.name": "stage" });
  assert.doesNotMatch(JSON.stringify(collector.spans), /albatross|lighthouse/);
  assert.equal(await service.stop(), 0);
});

test("logs one line and keeps answering while the collector is unavailable", async ({ t }) => {
  const { collector, service } = await start(t, { OTEL_EXPORTER_OTLP_TIMEOUT: "200", OTEL_BSP_SCHEDULE_DELAY: "1" });
  const lines = () => service.output().match(/the trace collector/g)?.length ?? 0;
  collector.status = 503;
  while (collector.requests.length < 4) {
    assert.equal((await service.post("/v1/generate", { prompt: PROMPT, effort: "low" })).status, 200);
  }
  assert.equal(lines(), 1);
  collector.status = 200;
  while (lines() < 2) assert.equal((await service.post("/v1/generate", { prompt: PROMPT, effort: "low" })).status, 200);
  assert.match(service.output(), /accepts traces again/);
  assert.doesNotMatch(service.output(), /[Uu]nhandled/);
});

test("answers and charges while every span fails", async ({ t }) => {
  const { vendor, service } = await start(t, faultEnv("span"));
  // One after the other, so that of each kind of span some cannot be started and some cannot be ended.
  for (let i = 0; i < 3; i++) {
    const answered = await service.post("/v1/generate", { prompt: PROMPT, ...strong });
    assert.equal(answered.status, 200);
    const answer = (await answered.json()) as { usage: { credits: number } };
    assert.ok(answer.usage.credits > 0 && JSON.stringify(answer).includes(ANSWER));
    const events = await readEvents(await service.post("/v1/generate:stream", { prompt: PROMPT, ...strong }));
    assert.equal(events.at(-1)?.event, "done");
    assert.equal((await service.post("/v1/generate", { prompt: "" })).status, 422);
  }
  vendor.always({ status: 400 });
  assert.equal((await service.post("/v1/generate", { prompt: PROMPT, ...strong })).status, 502);
  await until(() => service.output().includes("caught an internal error"));
  assert.match(service.output(), /"where":"trace"/);
  assert.equal(await service.stop(), 0);
});

test("exits cleanly when the collector is unreachable", async ({ t }) => {
  const { service } = await start(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
    OTEL_BSP_SCHEDULE_DELAY: "5000",
  });
  assert.equal((await service.post("/v1/generate", { prompt: PROMPT, effort: "low" })).status, 200);
  assert.equal(await service.stop(), 0);
  assert.doesNotMatch(service.output(), /[Uu]nhandled|did not stop cleanly/);
});

test("sends no spans and no traceparent without a collector", async ({ t }) => {
  const { vendor, collector, service } = await start(t, { OTEL_EXPORTER_OTLP_ENDPOINT: "" });
  const response = await service.post("/v1/generate", { prompt: PROMPT, effort: "low" }, { traceparent: TRACEPARENT });
  assert.equal(response.status, 200);
  assert.equal(vendor.calls[0]?.headers.traceparent, undefined);
  assert.ok(!("trace_id" in (await logLine(service, String(response.headers.get("x-request-id"))))));
  assert.equal(await service.stop(), 0);
  assert.equal(collector.connections, 0);
});
