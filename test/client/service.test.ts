import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe } from "vitest";
import { Scope } from "../../gen/chorus/admin/v1/keys_pb.js";
import { SpendPeriod } from "../../gen/chorus/v1/generation_pb.js";
import { type ChorusError, type ChorusOptions, createChorus, type FailureCode } from "../../src/client/client.ts";
import { SERVICE_CODES } from "../../src/client/failure.ts";
import { adminOf } from "../helpers/admin.ts";
import { draining } from "../helpers/draining.ts";
import { test as base } from "../helpers/fixtures.ts";
import { overridesOf } from "../helpers/limits.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";

const STRICT = {
  type: "json_schema",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
} as const;

const test = base.extend("shared", { scope: "file" }, async ({ serviceOfFile: service, database: { pool } }) => {
  const { keys, workspaces, credits } = adminOf(pool);
  const open = (options: Partial<ChorusOptions> = {}) =>
    createChorus({ baseUrl: service.url, apiKey: service.apiKey, retries: 0, ...options });
  const chorus = open();
  /** Purchased balance. Waits until nothing is in flight, because an abandoned request is settled later. */
  const balance = async (): Promise<number> => {
    const { concurrent_requests, credit } = await chorus.quotas();
    return concurrent_requests.used > 0 ? sleep(5).then(balance) : (credit?.balance ?? 0);
  };
  const near = (actual: number, expected: number) =>
    assert.ok(Math.abs(actual - expected) < 1e-6, `${actual} ${expected}`);
  /** Creates a workspace, with purchased credit if given. */
  const openWorkspace = async (name: string, purchased?: string) => {
    await workspaces.createWorkspace({ name });
    if (purchased) await credits.purchase({ workspace: name, amount: purchased, reference: "test" });
    return open({ apiKey: (await keys.createKey({ workspace: name })).secret });
  };
  return { keys, workspaces, credits, open, chorus, balance, near, openWorkspace };
});

describe("the client against the running service", () => {
  test("records outcomes, of which the last one counts", async ({ vendor, shared: { chorus, openWorkspace } }) => {
    vendor.reply({ text: "The answer is 42." });
    const { id } = await chorus.generate({ prompt: "What is 6 * 7?", effort: "low" });
    const first = await chorus.recordOutcome(id, { expected: "42" });
    assert.deepEqual(Object.keys(first), ["generation_id", "score", "recorded_at"]);
    assert.deepEqual([first.generation_id, first.score], [id, 1]);
    assert.deepEqual(await chorus.recordOutcome(id, { expected: "42.0" }), first);
    assert.equal((await chorus.recordOutcome(id, { correct: false, expected: "43" })).score, 0);
    assert.equal((await chorus.recordOutcome(id, { score: 0.5 })).score, 0.5);
    const stranger = await openWorkspace("stranger");
    for (const [client, of] of [
      [stranger, id],
      [chorus, "gen_0"],
      [chorus, "../quotas?"],
    ] as const) {
      await assert.rejects(client.recordOutcome(of, { score: 1 }), { code: "not_found", status: 404, field: "id" });
    }
    await assert.rejects(chorus.recordOutcome(id, { score: 2 }), { code: "invalid_request", field: "score" });
  });

  test("returns an answer typed by its schema, with its cost", async ({
    vendor,
    shared: { chorus, balance, near },
  }) => {
    const before = await balance();
    const text = await chorus.generate({ prompt: "a" });
    assert.equal(text.answer, "Hello from openai.");
    assert.equal(text.structured, undefined);
    assert.ok(text.usage.credits > 0);
    near(before - (await balance()), text.usage.credits);
    vendor.reply({ text: '{"city":"Oslo"}' });
    const { structured } = await chorus.generate({ prompt: "a", response_format: STRICT });
    const city: string = structured.city;
    assert.equal(city, "Oslo");
    vendor.reply({ text: '{"city":"Oslo"}' });
    const extracted = await chorus.generate({ prompt: "a", output_shape: "extract" });
    assert.deepEqual(extracted.structured, { city: "Oslo" });
  });

  test("returns the events, the text and the end of a stream", async ({ vendor, shared: { chorus } }) => {
    vendor.reply({ text: ["Hel", "lo"] }, { text: ["Hel", "lo"] });
    const pieces: string[] = [];
    for await (const event of chorus.stream({ prompt: "a", intelligence_trace: true })) {
      if (event.type === "delta") pieces.push(event.text);
      if (event.type === "done") assert.equal(event.finish_reason, "stop");
    }
    assert.equal(pieces.join(""), "Hello");
    const stream = chorus.stream({ prompt: "a" });
    assert.equal(await stream.text(), "Hello");
    assert.ok((await stream.done()).usage.credits > 0);
  });

  test("returns quotas and metrics", async ({ vendor: _, shared: { chorus } }) => {
    await chorus.generate({ prompt: "a" });
    const { workspace, windows } = await chorus.quotas();
    assert.equal(workspace, "default");
    assert.ok(windows.month.requests.used >= 1);
    const day = 86_400_000;
    const metrics = await chorus.metrics({ from: new Date(Date.now() - day), interval: "hour", group_by: "key" });
    assert.ok(metrics.totals.requests >= 1);
    assert.ok(metrics.series[0]?.key_id);
    assert.equal((await chorus.metrics()).interval, "day");
  });

  test("throws every failure of the service with its code and status", async ({
    service,
    vendor,
    database: { pool, url: databaseUrl },
    shared: { credits, keys, workspaces, open, chorus, openWorkspace },
    t,
  }) => {
    const seen = new Set<FailureCode>();
    const fails = async (call: Promise<unknown>, code: FailureCode, status: number, more: object = {}) => {
      await assert.rejects(call, { name: "ChorusError", code, status, requestId: /^req_/, ...more });
      seen.add(code);
    };
    const generate = (request: object, options?: Partial<ChorusOptions>) =>
      open(options).generate({ prompt: "a", ...request } as { prompt: string });
    /** Options that change the client's request. */
    const altered = (change: { method?: string; headers?: Record<string, string> }): Partial<ChorusOptions> => ({
      fetch: (url, init) =>
        fetch(url, {
          ...init,
          ...change,
          headers: { ...(init?.headers as Record<string, string>), ...change.headers },
        }),
    });

    await fails(chorus.generate([] as never), "invalid_json", 400);
    await fails(generate({}, altered({ headers: { "X-Long": "x".repeat(20_000) } })), "malformed_request", 431);
    await fails(generate({}, { apiKey: "ck_unknown" }), "unauthenticated", 401);
    await fails((await openWorkspace("poor")).generate({ prompt: "a" }), "insufficient_credit", 402);
    const scoped = await keys.createKey({ workspace: "default", scopes: [Scope.METRICS] });
    await fails(generate({}, { apiKey: scoped.secret }), "missing_scope", 403);
    await fails(generate({}, { baseUrl: `${service.url}/elsewhere` }), "not_found", 404);
    await fails(generate({}, altered({ method: "PUT" })), "method_not_allowed", 405);
    await fails(generate({ stop_sequences: Array(100_001).fill("a") }), "request_too_large", 413);
    await fails(generate({}, altered({ headers: { "Content-Type": "text/plain" } })), "unsupported_media_type", 415);
    await fails(generate({ temperature: 3 }), "invalid_request", 422, { field: "temperature" });
    await fails(chorus.metrics({ from: "yesterday" }), "invalid_request", 422, { field: "from" });
    const pattern = { type: "object", properties: { a: { type: "string", pattern: "a" } } };
    await fails(
      generate({ response_format: { type: "json_schema", schema: pattern } }),
      "invalid_response_schema",
      422,
      {
        field: "response_format.schema.properties.a",
      },
    );
    const streamed = chorus.stream({ prompt: "a", response_format: STRICT } as never).text();
    await fails(streamed, "structured_output_streaming_not_supported", 422);

    const again = { idempotencyKey: "the-same" };
    vendor.reply({ headersMs: 60_000 });
    const leave = new AbortController();
    const before = vendor.calls.length;
    const running = chorus.generate({ prompt: "a" }, { ...again, signal: leave.signal });
    await until(() => vendor.calls.length > before);
    await fails(chorus.generate({ prompt: "a" }, again), "idempotency_key_in_use", 409, { retryAfterMs: 1_000 });
    await fails(chorus.generate({ prompt: "b" }, again), "idempotency_key_reused", 422);
    leave.abort();
    await assert.rejects(running, { name: "AbortError" });

    const limited = await openWorkspace("limited", "100");
    await workspaces.setLimits({
      workspace: "limited",
      overrides: overridesOf([{ name: "requests_per_day", to: 1n }]),
    });
    await limited.generate({ prompt: "a" });
    const wait = { limit: "requests_per_day" };
    await assert.rejects(
      limited.generate({ prompt: "a" }),
      ({ retryAfterMs }: ChorusError) => Number(retryAfterMs) > 0,
    );
    await fails(limited.generate({ prompt: "a" }), "rate_limited", 429, wait);
    await fails(limited.stream({ prompt: "a" }).text(), "rate_limited", 429, wait);
    const thrifty = await openWorkspace("thrifty", "100");
    await credits.setSpendLimit({ workspace: "thrifty", period: SpendPeriod.DAY, amount: "1" });
    await fails(thrifty.generate({ prompt: "a" }), "spend_limit_reached", 429);

    vendor.always({ text: "no json" });
    await fails(generate({ response_format: STRICT }), "structured_output_failed", 502);
    vendor.always({ text: "", finish: "content-filter" });
    await fails(generate({}), "content_refused", 422);
    vendor.always({ status: 400, error: { message: "no", code: "context_length_exceeded" } });
    await fails(generate({}), "request_too_long", 422, { field: "prompt" });
    vendor.always({ status: 400, error: { message: "no" } });
    await fails(generate({}), "upstream_failed", 502);
    vendor.always({});
    vendor.reply({ text: ["a", "b"], end: "reset", after: 1 });
    await assert.rejects(chorus.stream({ prompt: "a" }).text(), { code: "upstream_failed", status: undefined });

    await pool.query("alter table generations rename column shape to away");
    await pool.query("alter table settlement_log rename column workspace_id to away");
    await fails(generate({}), "internal", 500);
    await pool.query("alter table generations rename column away to shape");
    await pool.query("alter table settlement_log rename column away to workspace_id");

    const deadlines = '{"low":150,"medium":60000,"high":60000}';
    const env = { ...vendor.env, CHORUS_DEADLINES_MS: deadlines, CHORUS_DRAIN_MS: "2000" };
    const other = await startService(t, { databaseUrl, env });
    vendor.always({ end: "silent" });
    await fails(generate({}, { baseUrl: other.url }), "timed_out", 504);
    const callsBefore = vendor.calls.length;
    const waiting = generate({ effort: "high" }, { baseUrl: other.url }).catch(() => undefined);
    await until(() => vendor.calls.length > callsBefore);
    const stopped = other.stop("SIGTERM");
    await draining(other.url);
    await fails(generate({}, { baseUrl: other.url }), "overloaded", 503, { retryAfterMs: 1_000 });
    await waiting;
    await stopped;
    await assert.rejects(generate({}, { baseUrl: other.url }), { code: "connection_failed", status: undefined });
    vendor.always({});

    const missing = [...SERVICE_CODES, "rate_limited" as const].filter((code) => !seen.has(code));
    assert.deepEqual(missing, []);
  });

  test("waits for Retry-After on 429 and then returns the answer", async ({
    vendor,
    shared: { keys, workspaces, open, openWorkspace },
  }) => {
    const busy = await openWorkspace("busy", "100");
    await workspaces.setLimits({
      workspace: "busy",
      overrides: overridesOf([{ name: "concurrent_requests", to: 1n }]),
    });
    const { secret: apiKey } = await keys.createKey({ workspace: "busy" });
    const responses: [status: number, retryAfter: string | null][] = [];
    const retrying = open({
      apiKey,
      retries: 10,
      fetch: async (...call) => {
        const response = await fetch(...call);
        responses.push([response.status, response.headers.get("retry-after")]);
        return response;
      },
    });
    const release = Promise.withResolvers<void>();
    vendor.reply(() => release.promise.then(() => ({})));
    const before = vendor.calls.length;
    const first = busy.generate({ prompt: "a" });
    await until(() => vendor.calls.length > before);
    const second = retrying.generate({ prompt: "b" });
    await until(() => responses.length > 0);
    release.resolve();
    await first;
    assert.equal((await second).answer, "Hello from openai.");
    assert.deepEqual(responses[0], [429, "1"]);
    assert.deepEqual(responses.at(-1), [200, null]);
  });

  test("fetches an answer again after a cut connection, and is charged once", async ({
    service,
    vendor,
    shared: { open, balance, near },
    t,
  }) => {
    const proxy = await startCuttingProxy(t, service.url);
    const persistent = open({ baseUrl: proxy.url, retries: 3 });
    const before = await balance();
    const calls = vendor.calls.length;
    proxy.cutNext("response");
    const { usage, answer } = await persistent.generate({ prompt: "cut" });
    assert.equal(proxy.cuts, 1);
    assert.equal(answer, "Hello from openai.");
    assert.equal(vendor.calls.length, calls + 1);
    near(before - (await balance()), usage.credits);
  });

  test("repeats a request whose connection was cut while it ran, and is charged once", async ({
    service,
    vendor,
    shared: { open, balance, near },
    t,
  }) => {
    const proxy = await startCuttingProxy(t, service.url);
    const before = await balance();
    vendor.reply({ headersMs: 300 });
    proxy.cutNext("request");
    const { usage } = await open({ baseUrl: proxy.url, retries: 5 }).generate({ prompt: "cut" });
    assert.equal(proxy.cuts, 1);
    near(before - (await balance()), usage.credits);
  });

  test("fails when a stream breaks off, and does not retry", async ({ service, vendor, shared: { open }, t }) => {
    const proxy = await startCuttingProxy(t, service.url);
    const calls = vendor.calls.length;
    vendor.reply({ text: ["one ", "two "], after: 1, end: "hang" });
    const pieces: string[] = [];
    const read = async () => {
      for await (const event of open({ baseUrl: proxy.url, retries: 3 }).stream({ prompt: "a" })) {
        if (event.type !== "delta") continue;
        pieces.push(event.text);
        proxy.cutOpen();
      }
    };
    await assert.rejects(read, { code: "connection_failed", status: undefined });
    assert.equal(pieces.join(""), "one ");
    assert.equal(vendor.calls.length, calls + 1);
  });

  test("aborts the vendor call when the caller aborts or leaves a stream", async ({
    vendor,
    shared: { chorus, balance, near },
  }) => {
    const before = await balance();
    const reason = new Error("enough");
    const controller = new AbortController();
    vendor.reply({ headersMs: 60_000 }, { text: ["one ", "two"], betweenMs: 60_000 });
    const calls = vendor.calls.length;
    const pending = chorus.generate({ prompt: "a" }, { signal: controller.signal });
    await until(() => vendor.calls.length > calls);
    controller.abort(reason);
    await assert.rejects(pending, reason);
    assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
    near(await balance(), before);
    for await (const event of chorus.stream({ prompt: "a" })) if (event.type === "delta") break;
    assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
  });
});
