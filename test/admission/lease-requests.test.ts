import assert from "node:assert/strict";
import { mock } from "node:test";
import { test } from "vitest";
import type { Caller } from "../../src/admission/authenticate.ts";
import type { Ask, Post } from "../../src/admission/escrow/exchange.ts";
import type { Grants } from "../../src/admission/grants.ts";
import { createAdmission, type Lease, type LeaseRequest, type Settlement } from "../../src/admission/lease.ts";
import { Failure } from "../../src/contract/failure.ts";
import type { Pool } from "../../src/store/pool.ts";
import type { Telemetry } from "../../src/telemetry/telemetry.ts";
import { answered, ask, RATES } from "../helpers/books.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

/** Admission over grants and a database that the test plays, at a time that it sets. */
function scripted(t: Lifetime) {
  const state = {
    now: 1_000,
    /** Whether the database still has the key. */
    hasKey: false,
    told: undefined as { isLow?: boolean; response?: string } | undefined,
    error: undefined as Error | undefined,
    /** Names of the limits that the grants and the database know. */
    limits: { grants: [] as string[], database: false },
    asks: [] as Ask[],
    posts: [] as Post[],
    reports: [] as string[],
  };
  const counted: string[] = [];
  const { mock: now } = mock.method(performance, "now", () => state.now);
  t.onTestFinished(() => now.restore());
  const grants = {
    admit(_: string, one: Ask) {
      state.asks.push(one);
      if (state.error) throw state.error;
      return state.told && Promise.resolve(state.told);
    },
    async settle(post: Post) {
      state.posts.push(post);
      if (state.error) throw state.error;
      return post.charge;
    },
    report: async (workspace: string) => void state.reports.push(`reported ${workspace}`),
    limits: () => (state.limits.grants.length > 0 ? state.limits.grants : undefined),
  };
  const query = async (text: string, [ids]: readonly unknown[]) => {
    if (text.includes("settlement_log")) state.reports.push(`looked for what waits of ${ids}`);
    if (text.includes("from api_keys") && state.hasKey) return (ids as string[]).map((id) => ({ id, owner: "ws_1" }));
    if (text.includes("settlement_log") || text.includes("from api_keys") || !state.limits.database) return [];
    const refusal = { refusal: "rate_limited", limit: "requests_per_day" };
    const left = { requests_per_day: [5, 0] };
    return (ids as string[]).map((id) => ({ id, refusal, left, minute: 0, ms_left: 10_000 }));
  };
  const telemetry = {
    leaseTaken: () => void counted.push("taken"),
    leaseEnded: () => void counted.push("ended"),
    leaseRefused: (limit: string) => void counted.push(limit),
  };
  const admission = createAdmission(
    { query } as unknown as Pool,
    grants as unknown as Grants,
    () => 60_000,
    telemetry as unknown as Telemetry,
  );
  /** Admits a request of `ws_1`. */
  const open = async (of: Partial<LeaseRequest> = {}) => {
    const opened = await admission.open(ask("ws_1", { authenticatedAt: state.now, ...of }));
    assert.ok("settle" in opened);
    return opened;
  };
  return { state, admission, open, counted };
}

const callerWith = (capped: string[]): Caller => ({ ...ask("ws_1").caller, keyId: "key_7", capped });

for (const [what, capped, subjects, expected] of [
  ["none, although caps are possible", ["user", "tag:team"], {}, undefined],
  ["none that can have a cap", [], { user: "ann", tags: { team: "blue" } }, undefined],
  ["its key", ["key"], { user: "ann", tags: { key: "a", user: "b" } }, ["key:key_7"]],
  ["its user", ["user"], { user: "ann", tags: { team: "blue" } }, ["user:ann"]],
  ["its tags that can have caps", ["tag:team"], { user: "ann", tags: { team: "blue", app: "x" } }, ["tag:team=blue"]],
  [
    "all of them",
    ["tag:app", "user", "key", "tag:team"],
    { user: "", tags: { app: "x", team: "blue" } },
    ["key:key_7", "user:", "tag:app=x", "tag:team=blue"],
  ],
] as const) {
  test(`asks for headroom of the subjects of a request: ${what}`, async (t) => {
    const { state, open } = scripted(t);
    await open({ caller: callerWith([...capped]), subjects, inputTokens: 3, maxOutputTokens: 2, requestId: "req_1" });
    const plain = { requestId: "req_1", hold: 3 * 100 + 2 * 400, input: 3 };
    assert.deepEqual(state.asks, [expected ? { ...plain, subjects: expected } : plain]);
  });
}

for (const [what, told, level] of [
  ["the level that was asked for", undefined, "high"],
  ["the level low when a cap allows no other", { isLow: true }, "low"],
] as const) {
  test(`records ${what}`, async (t) => {
    const { state, open } = scripted(t);
    state.told = told;
    const lease = await open({ level: "high", requestId: "req_1" });
    assert.equal(lease.isLow, told !== undefined);
    await lease.settle(answered());
    assert.deepEqual([state.posts[0]?.requestId, rowsOf(state.posts)[0]?.level], ["req_1", level]);
  });
}

const rowsOf = (posts: readonly Post[]) =>
  posts.map(({ row }) => JSON.parse(JSON.stringify(row)) as Record<string, unknown>);

/** What every record has. */
const PLAIN = {
  id: "gen_1",
  request_id: "req_1",
  created_at: "1970-01-01T00:01:00.000Z",
  key_id: "key_1",
  streamed: false,
  shape: "text",
  effort: "auto",
  level: "low",
  input_tokens: 10,
  output_tokens: 100,
  cached_tokens: 0,
  credits_micro: "41000",
  outcome: "ok",
  finish_reason: "stop",
  latency_ms: 13,
  model: "m",
};

for (const [what, of, actual, expected] of [
  ["nothing but the answer", {}, {}, {}],
  [
    "user and tags",
    { subjects: { user: "ann", tags: { team: "blue" } } },
    {},
    { end_user: "ann", tags: { team: "blue" } },
  ],
  [
    "what is known of the model",
    {},
    { ability: "math", fingerprint: "f", drafts: { a: 1 } },
    { ability: "math", fingerprint: "f", drafts: { a: 1 } },
  ],
  [
    "what the calls of models used and cost",
    {},
    { cost: { calls: 2, inputTokens: 20, outputTokens: 30, usd: 0.1 + 0.2 } },
    { model_calls: 2, model_input_tokens: 20, model_output_tokens: 30, cost_usd: "0.300000000" },
  ],
  [
    "unknown costs as null",
    {},
    { cost: { calls: 0, inputTokens: 0, outputTokens: 0, usd: undefined } },
    { model_calls: 0, model_input_tokens: 0, model_output_tokens: 0, cost_usd: null },
  ],
  [
    "the response to keep for an idempotency key",
    { idempotency: { key: "aa", body: "bb" } },
    { response: (credits: number) => Buffer.from(`for ${credits}`) },
    { key: "aa", body: "bb", response: Buffer.from("for 0.041").toString("base64") },
  ],
] as [string, Partial<LeaseRequest>, Partial<Settlement>, object][]) {
  test(`writes a record with ${what}`, async (t) => {
    const { state, open } = scripted(t);
    const lease = await open({ requestId: "req_1", generationId: "gen_1", ...of });
    assert.deepEqual(await lease.settle(answered(actual)), { credits: 0.041 });
    assert.deepEqual(rowsOf(state.posts), [{ ...PLAIN, ...expected }]);
  });
}

for (const [what, of, actual, charge, expected] of [
  ["what was cached of the input, and no more than that", {}, { cachedTokens: 99 }, 40_100, { cached_tokens: 10 }],
  [
    "a stream that its caller has left, and charges what was written",
    { streamed: true },
    { outcome: "caller_gone", outputTokens: 1 },
    1_400,
    { streamed: true, outcome: "caller_gone", output_tokens: 1 },
  ],
  [
    "a failure, which costs nothing",
    {},
    { outcome: "upstream_failed", finishReason: undefined, model: undefined },
    0,
    { outcome: "upstream_failed", finish_reason: null, model: null },
  ],
] as [string, Partial<LeaseRequest>, Partial<Settlement>, number, object][]) {
  test(`records ${what}`, async (t) => {
    const { state, open } = scripted(t);
    const lease = await open({ requestId: "req_1", generationId: "gen_1", ...of });
    const settled = lease.settle(answered(actual));
    assert.deepEqual(await settled, { credits: charge / 1e6 });
    // Only the first call has an effect.
    assert.equal(lease.settle(answered()), settled);
    assert.deepEqual(rowsOf(state.posts), [{ ...PLAIN, credits_micro: String(charge), ...expected }]);
    assert.equal(state.posts[0]?.charge, charge);
  });
}

test("returns the response that was kept for the idempotency key", async (t) => {
  const { state, admission } = scripted(t);
  const idempotency = { key: "aa", body: "bb" };
  state.told = { response: Buffer.from("the answer").toString("base64") };
  const opened = await admission.open(ask("ws_1", { authenticatedAt: state.now, idempotency }));
  assert.ok("replay" in opened);
  assert.equal(Buffer.from(opened.replay).toString(), "the answer");
  const [{ key, body } = {}] = state.asks;
  assert.deepEqual({ key, body }, idempotency);
  assert.equal(admission.precheck("ws_1", RATES), undefined);
});

test("counts the leases that are taken, ended and refused, with the limit or why", async (t) => {
  const { state, admission, open, counted } = scripted(t);
  const [first, second] = [await open(), await open()];
  await first.settle(answered());
  const refusals = [
    new Failure("overloaded"),
    new Failure("rate_limited", { limit: "requests_per_day" }),
    new Failure("rate_limited", { limit: "user:requests_per_day" }),
  ];
  for (const error of refusals) {
    state.error = error;
    await assert.rejects(open(), error);
  }
  await assert.rejects(second.settle(answered()), { kind: "rate_limited" });
  assert.deepEqual(counted, ["taken", "taken", "ended", "overloaded", "requests_per_day", "cap", "ended"]);

  // The workspace was refused, so the database is asked before the body of its next request is read.
  counted.length = 0;
  await admission.precheck("ws_1", RATES);
  assert.deepEqual(counted, []);
  state.error = refusals[1];
  await assert.rejects(open(), refusals[1]);
  state.limits.database = true;
  await assert.rejects(async () => admission.precheck("ws_1", RATES), { kind: "rate_limited" });
  assert.deepEqual(counted, ["requests_per_day", "requests_per_day"]);
});

test("reports what runs before it posts the log of the workspace", async (t) => {
  const { state, admission } = scripted(t);
  await admission.report("ws_1");
  assert.deepEqual(state.reports, ["reported ws_1", "looked for what waits of ws_1"]);
});

test("settles a lease that is left as internal, without a charge and with the time that has passed", async (t) => {
  const { state, open } = scripted(t);
  const left: Lease = await open();
  state.now += 250;
  state.error = new Failure("overloaded");
  await left[Symbol.asyncDispose]();
  const [row] = rowsOf(state.posts);
  assert.deepEqual([row?.outcome, row?.credits_micro, row?.latency_ms], ["internal", "0", 250]);
});

for (const [error, asksAgain] of [
  [new Failure("insufficient_credit"), true],
  [new Failure("rate_limited", { limit: "requests_per_minute" }), true],
  [new Failure("spend_limit_reached"), true],
  // A cap binds its subject, not the workspace.
  [new Failure("rate_limited", { limit: "user:requests_per_minute" }), false],
  [new Failure("insufficient_credit", { limit: "key:credits_per_day" }), false],
  [new Failure("overloaded"), false],
] as const) {
  const what = asksAgain ? "checks the workspace again" : "does not check the workspace again";
  test(`${what} after ${error.kind} ${error.limit}`, async (t) => {
    const { state, admission, open } = scripted(t);
    await open();
    assert.equal(admission.precheck("ws_1", RATES), undefined);
    state.error = error;
    await assert.rejects(open(), error);
    const checked = admission.precheck("ws_1", RATES);
    assert.equal(checked !== undefined, asksAgain);
    await checked;
  });
}

test("refuses a request whose key was revoked since it was looked up", async (t) => {
  const { state, admission, open } = scripted(t);
  await assert.rejects(open({ authenticatedAt: state.now - 500 }), { kind: "unauthenticated" });
  assert.deepEqual(state.asks, []);
  // Nobody knows whether the workspace can make requests.
  assert.notEqual(admission.precheck("ws_1", RATES), undefined);
  state.hasKey = true;
  await open({ authenticatedAt: state.now - 500, requestId: "req_1" });
  assert.deepEqual(
    state.asks.map(({ requestId }) => requestId),
    ["req_1"],
  );
});

test("states the limits of its grants, or else those with which the database has refused the workspace", async (t) => {
  const { state, admission } = scripted(t);
  assert.equal(admission.limits("ws_1"), undefined);
  state.limits.database = true;
  await assert.rejects(async () => admission.precheck("ws_1", RATES), { kind: "rate_limited" });
  assert.equal(admission.limits("ws_1")?.[0]?.name, "requests_per_day");
  state.limits.grants = ["of grants"];
  assert.deepEqual(admission.limits("ws_1"), ["of grants"]);
});
