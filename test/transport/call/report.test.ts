import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { pino } from "pino";
import { test } from "vitest";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { CallerGone } from "../../../src/contract/endings.ts";
import { Failure } from "../../../src/contract/failure.ts";
import type { Facts } from "../../../src/generate/request-context.ts";
import { createTelemetry } from "../../../src/telemetry/create.ts";
import type { RequestEnd } from "../../../src/telemetry/telemetry.ts";
import { createReport } from "../../../src/transport/call/report.ts";
import { testDatabase } from "../../helpers/database.ts";
import { faultEnv } from "../../helpers/faults.ts";
import { transports } from "../../helpers/rpc.ts";
import { readEvents, startService, type TestService } from "../../helpers/service.ts";
import { until } from "../../helpers/until.ts";

/** Reports the end of one request. @returns the log lines and the counted event */
function report(facts: Facts, error?: unknown): { lines: Record<string, unknown>[]; end: RequestEnd | undefined } {
  const lines: Record<string, unknown>[] = [];
  let end: RequestEnd | undefined;
  const log = pino({ base: null }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const telemetry = {
    ...createTelemetry(),
    request: (ended: RequestEnd) => {
      end = ended;
    },
  };
  createReport(log, telemetry)(
    { transport: "rest", method: "generate", requestId: "req_1", startedAt: performance.now() - 40, facts },
    error,
  );
  return { lines, end };
}

test("logs one line with the known facts of a request", () => {
  const facts: Facts = {
    workspaceId: "ws_1",
    keyId: "key_1",
    generationId: "gen_1",
    level: "low",
    outcome: "ok",
    inputTokens: 1,
    outputTokens: 2,
    cachedTokens: 0,
    credits: 0.5,
  };
  const { lines, end } = report(facts);
  assert.equal(lines.length, 1);
  const { time: _, latency_ms, ...line } = lines[0] ?? {};
  assert.ok(Number(latency_ms) >= 40 && Number(latency_ms) < 5_000);
  assert.deepEqual(line, {
    level: 30,
    request_id: "req_1",
    generation_id: "gen_1",
    workspace_id: "ws_1",
    key_id: "key_1",
    endpoint: "rest generate",
    outcome: "ok",
    intelligence_level: "low",
    input_tokens: 1,
    output_tokens: 2,
    cached_tokens: 0,
    credits: 0.5,
    msg: "request",
  });
  assert.equal(end?.outcome, "ok");
});

test("takes the outcome from the settlement, else from the thrown failure, else reports ok", () => {
  assert.equal(report({}).end?.outcome, "ok");
  assert.equal(report({}, new CallerGone()).end?.outcome, "caller_gone");
  assert.equal(report({}, new Failure("invalid_json")).end?.outcome, "invalid_json");
  assert.equal(report({}, new TypeError("secret")).end?.outcome, "internal");
  assert.equal(report({ outcome: "timed_out" }).end?.outcome, "timed_out", "reported in an event of the stream");
  assert.equal(report({ outcome: "ok" }, new CallerGone()).end?.outcome, "ok", "charged before the answer was sent");
  assert.equal(
    report({}, new Failure("rate_limited", { limit: "requests_per_day" })).lines[0]?.limit,
    "requests_per_day",
  );
});

test("logs a second line with the kind and place of a defect, without its message", () => {
  const { lines } = report({}, new TypeError("secret"));
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ["request", "request failed"],
  );
  assert.match(JSON.stringify(lines[1]), /TypeError.*report\.test\.ts/);
  assert.doesNotMatch(JSON.stringify(lines), /secret/);
});

const MARKER = "xyzzy-marker";

async function figures(service: TestService): Promise<Map<string, number>> {
  const text = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  return new Map(
    text.split("\n").flatMap((line) => {
      const [, name, value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(value)] as const];
    }),
  );
}

test("logs and counts every request without its content", async (t) => {
  const service = await startService(t, { env: { LOG_LEVEL: "trace" } });
  const text = { prompt: `What is 6 * 7? ${MARKER}`, system: MARKER, [`${MARKER}-field`]: MARKER };
  const answered = await service.post("/v1/generate", text);
  assert.equal(answered.status, 200);
  const { request_id, id, usage } = (await answered.json()) as {
    request_id: string;
    id: string;
    usage: { credits: number; input_tokens: number };
  };
  const events = await readEvents(await service.post("/v1/generate:stream", text));
  assert.equal(events.at(-1)?.event, "done");
  const rpc = (method: string, body: object, headers: Record<string, string>) =>
    fetch(`${service.rpcUrl}/chorus.v1.GenerationService/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  assert.equal((await rpc("Generate", { prompt: MARKER }, { "x-api-key": service.apiKey })).status, 200);
  await (await rpc("Generate", { prompt: MARKER }, { "x-api-key": MARKER })).text();
  await (await service.post("/v1/generate", `{"${MARKER}`)).text();
  await (await service.post("/v1/generate", { prompt: MARKER, temperature: 9 })).text();
  const schema = { type: "object", properties: { [MARKER]: { type: MARKER } } };
  await (
    await service.post("/v1/generate", { prompt: MARKER, response_format: { type: "json_schema", schema } })
  ).text();
  await (await service.post("/v1/generate", text, { "x-api-key": `${MARKER}-secret` })).text();
  await (await service.get(`/v1/${MARKER}?${MARKER}`)).text();
  await (await service.get("/v1/quotas")).text();
  await (await service.get("/healthz")).text();

  // A request is counted after its answer was sent.
  let counted = await figures(service);
  await until(async () => {
    counted = await figures(service);
    return counted.get('chorus_requests_total{transport="rest",method="quotas",outcome="ok"}') === 1;
  });
  const outcome = (labels: string): number | undefined => counted.get(`chorus_requests_total{${labels}}`);
  assert.equal(outcome('transport="rest",method="generate",outcome="ok"'), 1);
  assert.equal(outcome('transport="rest",method="stream_generate",outcome="ok"'), 1);
  assert.equal(outcome('transport="rpc",method="generate",outcome="ok"'), 1);
  assert.equal(outcome('transport="rpc",method="generate",outcome="unauthenticated"'), 1);
  assert.equal(outcome('transport="rest",method="generate",outcome="unauthenticated"'), 1);
  assert.equal(outcome('transport="rest",method="generate",outcome="invalid_json"'), 1);
  assert.equal(outcome('transport="rest",method="generate",outcome="invalid_request"'), 1);
  assert.equal(outcome('transport="rest",method="generate",outcome="invalid_response_schema"'), 1);
  assert.equal(outcome('transport="rest",method="none",outcome="not_found"'), 1);
  assert.equal(outcome('transport="rest",method="quotas",outcome="ok"'), 1);
  assert.equal(counted.get("chorus_leases_taken_total"), 3);
  assert.equal(counted.get("chorus_leases_running"), 0);
  assert.equal(counted.get('chorus_batch_size_count{stage="settlement"}'), 3);
  assert.equal(counted.get('chorus_model_calls_total{model="offline-fast",tier="fast",outcome="ok"}'), 3);
  assert.ok((counted.get("chorus_credits_total") ?? 0) > 2 * usage.credits);
  assert.equal(counted.get('chorus_body_bytes{transport="rest"}'), 0);

  await service.stop();
  const lines = service
    .output()
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  const requests = lines.filter(({ msg }) => msg === "request");
  assert.equal(requests.length, 10);
  const {
    endpoint,
    outcome: end,
    generation_id,
    credits,
    input_tokens,
    workspace_id,
    key_id,
  } = requests.find((line) => line.request_id === request_id);
  assert.deepEqual(
    [endpoint, end, generation_id, credits, input_tokens],
    ["rest generate", "ok", id, usage.credits, usage.input_tokens],
  );
  assert.match(`${workspace_id} ${key_id}`, /^ws_\w+ key_\w+$/);
  assert.doesNotMatch(service.output(), new RegExp(`${MARKER}|${service.apiKey}|${service.operatorToken}`));
});

test("a report that fails is counted and does not throw", () => {
  const unreadable = {
    get message(): never {
      throw new TypeError("secret");
    },
  };
  const facts = Object.defineProperty<Facts>({}, "outcome", { get: () => unreadable.message });
  const request = { transport: "rest", method: "generate", requestId: "req_1", startedAt: 0, facts } as const;
  const telemetry = createTelemetry();
  createReport(pino({ level: "silent" }), telemetry)(request);
  assert.equal(telemetry.errors.counts.report, 1);

  const broken = {
    ...telemetry,
    request() {
      throw new Error("x");
    },
  };
  createReport(pino({ level: "silent" }), broken)({ ...request, facts: {} });
  assert.equal(telemetry.errors.counts.report, 2);
});

test("requests are answered and charged while every metric, log line and report fails", async (t) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const env = { LOG_LEVEL: "info", ...faultEnv("counter", "histogram", "log", "report") };
  const service = await startService(t, { databaseUrl, env });
  const body = { prompt: "What is 6 * 7?" };
  const credits: number[] = [];

  const answered = await service.post("/v1/generate", body);
  assert.equal(answered.status, 200);
  credits.push(((await answered.json()) as { usage: { credits: number } }).usage.credits);
  const events = await readEvents(await service.post("/v1/generate:stream", body));
  const done = events.find(({ event }) => event === "done")?.data;
  credits.push((done?.usage as { credits: number } | undefined)?.credits ?? 0);
  const headers = { "x-api-key": service.apiKey };
  const { gRPC, "Connect over HTTP/1.1": connect } = transports(service.rpcUrl);
  const { usage } = await createClient(GenerationService, connect).generate(body, { headers });
  credits.push(usage?.credits ?? 0);
  for await (const { event } of createClient(GenerationService, gRPC).streamGenerate(body, { headers })) {
    if (event.case === "done") credits.push(event.value.usage?.credits ?? 0);
  }
  assert.equal((await service.post("/v1/generate", { prompt: "" })).status, 422);

  assert.equal(credits.length, 4);
  assert.ok(credits.every((charged) => charged > 0 && charged === credits[0]));
  const charges = credits.map((charged) => ({ outcome: "ok", credits: charged }));
  assert.deepEqual(
    await pool.query("select outcome, (credits_micro / 1e6)::float8 as credits from generations"),
    charges,
  );
  const caught = (counted: Map<string, number>, where: string) =>
    counted.get(`chorus_internal_errors_total{where="${where}"}`) ?? 0;
  let counted = await figures(service);
  await until(async () => {
    counted = await figures(service);
    return caught(counted, "report") >= 5;
  });
  assert.equal(caught(counted, "report"), 5);
  assert.ok(caught(counted, "metric") >= 5 * 2);
  assert.equal(await service.stop(), 0);
  const lines = service.output().match(/"msg":"caught an internal error/g)?.length ?? 0;
  assert.ok(lines >= 1 && lines < 20, `${lines} lines`);
  assert.doesNotMatch(service.output(), /injected/);
});
