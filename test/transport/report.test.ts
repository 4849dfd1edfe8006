import assert from "node:assert/strict";
import { pino } from "pino";
import { test } from "vitest";
import { Failure } from "../../src/failure.ts";
import { CallerGone, type Facts } from "../../src/service/request-context.ts";
import type { RequestEnd } from "../../src/telemetry.ts";
import { createTelemetry } from "../../src/telemetry.ts";
import { createReport } from "../../src/transport/report.ts";
import { readEvents, startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

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
