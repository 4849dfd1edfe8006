import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { test } from "vitest";
import { ActivityService, CallOutcome, Outcome } from "../../gen/chorus/admin/v1/activity_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { GenerationService, GenerationStatus, StepRole } from "../../gen/chorus/v1/generation_pb.js";
import { NAMES, startPanel } from "../helpers/panel.ts";
import { transports } from "../helpers/rpc.ts";
import type { TestService } from "../helpers/service.ts";
import { createWorkspace } from "../helpers/workspaces.ts";

const QUESTION = "What is the capital of France? (a) Lyon (b) Paris (c) Rome";

/** Calls as an operator, or as the owner of the workspace `default`. */
async function clients({ rpcUrl, operatorToken }: TestService) {
  const transport = createConnectTransport({ baseUrl: rpcUrl, httpVersion: "1.1" });
  const activity = createClient(ActivityService, transport);
  const operator = { headers: { authorization: `Bearer ${operatorToken}` } };
  const workspaces = createClient(WorkspaceService, transport);
  const { token } = await workspaces.createOwnerToken({ workspace: "default" }, operator);
  const owner = { headers: { authorization: `Bearer ${token}` } };
  return {
    byOperator: (id: string) => activity.getRun({ workspace: "default", id }, operator),
    byOwner: (id: string) => activity.getRun({ id }, owner),
  };
}

test("shows how an answer was made, to its workspace, its owner and operators", async (t) => {
  const panel = await startPanel(t);
  const { service, ask } = panel;
  const { byOperator, byOwner } = await clients(service);
  panel.script({
    openai: { draft: { text: "Answer: (b) Paris" } },
    anthropic: { draft: { text: "The answer is (c)." } },
    google: { draft: { text: "Answer: b" } },
  });
  const asked = { prompt: QUESTION, effort: "high", user: "anna", tags: { team: "maps" }, intelligence_trace: true };
  const answer = await ask(asked);
  const response = await service.get(`/v1/generations/${answer.id}`);
  assert.equal(response.status, 200);
  const run = JSON.parse(await response.text());
  const { created_at, latency_ms, ...rest } = run;
  assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000 && latency_ms >= 0);
  assert.deepEqual(rest, {
    ...{ id: answer.id, request_id: answer.request_id, status: "ok", streamed: false, effort: "high" },
    ...{ usage: answer.usage, finish_reason: "stop", notices: [], user: "anna", tags: { team: "maps" } },
    intelligence_trace: { ...answer.intelligence_trace, agreement: run.intelligence_trace.agreement },
  });
  assert.ok(Math.abs(run.intelligence_trace.agreement - answer.intelligence_trace.agreement) <= 0.000_5);

  const seen = await byOperator(answer.id);
  assert.equal(seen.generation?.outcome, Outcome.OK);
  assert.equal(seen.calls.length, panel.calls().length);
  assert.ok(Number(seen.costUsd) > 0);
  for (const { model, vendor, step, outcome, costUsd } of seen.calls) {
    assert.match(model, /^member-/);
    assert.ok(["openai", "anthropic", "google"].includes(vendor));
    assert.ok(seen.intelligenceTrace?.steps.some(({ id }) => id === step));
    assert.equal(outcome, CallOutcome.OK);
    assert.ok(Number(costUsd) > 0);
  }
  const own = await byOwner(answer.id);
  assert.deepEqual([own.calls.length, own.costUsd], [seen.calls.length, undefined]);
  assert.ok(own.calls.every(({ role }) => role === StepRole.STRONG || role === StepRole.FAST));
  assert.doesNotMatch(
    JSON.stringify(own.calls, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
    NAMES,
  );

  // By the identifier of the request.
  assert.deepEqual(await byOperator(answer.request_id), seen);
  assert.deepEqual(await byOwner(answer.request_id), own);
  assert.equal((await service.get(`/v1/generations/${answer.request_id}`)).status, 200);
  assert.deepEqual(await (await service.get(`/v1/generations/${answer.request_id}`)).json(), run);
  const rated = await service.post(`/v1/generations/${answer.request_id}/outcome`, { score: 1 });
  assert.equal(rated.status, 404);
  assert.equal(JSON.parse(await rated.text()).field, "id");

  // Another replica, over each protocol; and what was not asked to be traced.
  const plain = await ask({ prompt: QUESTION, effort: "low" });
  const other = await panel.start();
  for (const [name, transport] of Object.entries(transports(other.rpcUrl))) {
    const headers = { "x-api-key": service.apiKey };
    const found = await createClient(GenerationService, transport).getGeneration({ id: answer.id }, { headers });
    assert.deepEqual(
      [found.id, found.intelligenceTrace?.steps.length],
      [answer.id, seen.intelligenceTrace?.steps.length],
      name,
    );
  }
  assert.equal("intelligence_trace" in plain, false);
  const steps = JSON.parse(await (await service.get(`/v1/generations/${plain.id}`)).text()).intelligence_trace.steps;
  assert.deepEqual(
    steps.map(({ kind, role, outcome }: Record<string, string>) => [kind, role, outcome]),
    [["answer", "fast", "ok"]],
  );

  // A run is small, and has no text.
  const rows = await panel.pool.query<{ record: string }>("select record::text as record from runs order by began_at");
  assert.equal(rows.length, 2);
  for (const { record } of rows)
    assert.ok(Buffer.byteLength(record) <= 800 && !/paris|lyon|anna/i.test(record), record);
});

test("says why calls failed: the status and code of the vendor for operators, nothing of it for others", async (t) => {
  const panel = await startPanel(t);
  const { service } = panel;
  const { byOperator, byOwner } = await clients(service);
  const refused = { status: 401, error: { message: "Incorrect API key provided", code: "invalid_api_key" } };
  panel.script({
    openai: { draft: refused },
    anthropic: { draft: { text: "Hi." } },
    google: { draft: { text: "Hi." } },
  });
  const answer = await panel.ask({ prompt: "Say hi.", effort: "low" });
  const run = await byOperator(answer.id);
  const failed = run.calls.filter(({ outcome }) => outcome === CallOutcome.FAILED);
  assert.ok(failed.length > 0, "the first fast model is that of openai");
  assert.deepEqual(
    [failed[0]?.model, failed[0]?.status, failed[0]?.code],
    ["member-openai-fast", 401, "invalid_api_key"],
  );
  const own = (await byOwner(answer.id)).calls.filter(({ outcome }) => outcome === CallOutcome.FAILED);
  assert.deepEqual([own[0]?.model, own[0]?.status, own[0]?.code], ["", undefined, ""]);

  const all = { draft: { status: 500, error: { message: "down" } } };
  panel.script({ openai: all, anthropic: all, google: all });
  const response = await service.post("/v1/generate", { prompt: "Say hi.", effort: "low" });
  assert.equal(response.status, 502);
  const [row] = await panel.pool.query<{ id: string }>("select id from generations where outcome = 'upstream_failed'");
  const found = JSON.parse(await (await service.get(`/v1/generations/${row?.id}`)).text());
  assert.deepEqual([found.status, found.failure_code, found.usage.credits], ["failed", "upstream_failed", 0]);
  assert.equal("finish_reason" in found, false);
  assert.ok((await byOperator(row?.id ?? "")).calls.every(({ status }) => status === 500 || status === 401));
});

test("finds no request of another workspace, and none that does not exist", async (t) => {
  const panel = await startPanel(t, { CHORUS_RUNS: "off" });
  const { service } = panel;
  panel.script({});
  const answer = await panel.ask({ prompt: "Say hi.", effort: "low" });
  const other = await createWorkspace(service, "other");
  const status = async (id: string, key = service.apiKey) => {
    const response = await service.get(`/v1/generations/${id}`, { "x-api-key": key });
    return [response.status, JSON.parse(await response.text()).field];
  };
  assert.deepEqual(await status(answer.id, other), [404, "id"]);
  assert.deepEqual(await status("gen_0"), [404, "id"]);
  assert.deepEqual(await status(`gen_${"0".repeat(32)}`), [404, "id"]);

  // Without runs, what is recorded of each request is shown.
  const response = await service.get(`/v1/generations/${answer.id}`);
  const found = JSON.parse(await response.text());
  assert.deepEqual([found.status, found.usage.output_tokens > 0, "intelligence_trace" in found], ["ok", true, false]);
  assert.equal((await panel.pool.query("select from runs")).length, 0);
  const headers = { "x-api-key": service.apiKey };
  const client = createClient(
    GenerationService,
    createConnectTransport({ baseUrl: service.rpcUrl, httpVersion: "1.1" }),
  );
  assert.equal((await client.getGeneration({ id: answer.id }, { headers })).status, GenerationStatus.OK);
});
