import assert from "node:assert/strict";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import {
  ModelHealth,
  OperationsService,
  WorkspaceCondition,
  type WorkspaceState,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { LimitName, WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { SpendPeriod } from "../../gen/chorus/v1/generation_pb.js";
import { openPool } from "../../src/store/pool.ts";
import { test as base } from "../helpers/fixtures.ts";
import { OWN_PROCESS } from "../helpers/program.ts";
import { rpcFailure, transportWith } from "../helpers/rpc.ts";
import { startOwnService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import type { Reply } from "../helpers/vendors.ts";

const test = base
  .extend("env", { scope: "file" }, OWN_PROCESS)
  .extend("operator", ({ service: { rpcUrl, operatorToken } }) => {
    const as = (token: string) => {
      const transport = transportWith(rpcUrl, token);
      return {
        operations: createClient(OperationsService, transport),
        workspaces: createClient(WorkspaceService, transport),
        credits: createClient(CreditService, transport),
      };
    };
    return { ...as(operatorToken), as };
  });

test("lists models with their health and calls", async ({ service, vendor, operator: { operations } }) => {
  const model = async (name: string) => (await operations.listModels({})).models.find((of) => of.name === name);
  await until(async () => (await model("openai-fast"))?.health === ModelHealth.UNUSED);
  vendor.always({ status: 500 });
  await service.post("/v1/generate", { prompt: "hello", effort: "low" });
  // Replicas report every ten seconds.
  await until(async () => ((await model("openai-fast"))?.calls ?? 0n) > 0n);
  const fast = await model("openai-fast");
  assert.ok(fast);
  assert.deepEqual([fast.tier, fast.vendor, fast.api, fast.replicas], ["fast", "openai", "chat", 1]);
  assert.ok(fast.failedCalls > 0n && fast.failedCalls === fast.calls);
  assert.equal(fast.health, ModelHealth.DEGRADED, "also where all of very few calls have failed");
  assert.ok(fast.shareOfCalls > 0 && fast.shareOfCalls <= 1);
  assert.deepEqual([fast.servedVersion, fast.unexpectedVersion], ["", false]);
});

test("shows what a vendor says has answered, if the catalogue expects another model", async ({
  service,
  vendor,
  operator: { operations },
}) => {
  vendor.always({ text: "Hello.", version: "gpt-other" });
  assert.equal((await service.post("/v1/generate", { prompt: "hello", effort: "low" })).status, 200);
  const models = async () => (await operations.listModels({})).models;
  await until(async () => (await models()).some(({ servedVersion }) => servedVersion === "gpt-other"));
  const answered = (await models()).find(({ servedVersion }) => servedVersion !== "");
  assert.ok(answered?.unexpectedVersion);
  assert.match(service.output(), /another model answers/);
});

test("tests a model: time, tokens and who answers, or why not and what to do", async ({
  vendor,
  database,
  operator,
}) => {
  const { operations } = operator;
  vendor.reply({ text: "OK", version: "gpt-4o-2024-08-06", usage: { input: 14, output: 2 } });
  const works = await operations.testModel({ model: "openai-fast" });
  assert.deepEqual([works.answered, works.failure, works.servedVersion], [true, undefined, "gpt-4o-2024-08-06"]);
  assert.deepEqual([works.inputTokens, works.outputTokens], [14n, 2n]);
  assert.ok(works.durationMs >= 0 && works.durationMs < 30_000);
  assert.equal(vendor.calls.length, 1);

  const failing = async (script: Reply) => {
    vendor.always(script);
    const { answered, failure } = await operations.testModel({ model: "openai-fast" });
    assert.equal(answered, false);
    assert.ok(failure?.at && failure.count === 1n);
    return [failure.status, failure.code, failure.message, failure.needsOperator, failure.action];
  };
  const error = { message: "Incorrect API key provided: vendor-secret. See our site.", code: "invalid_api_key" };
  assert.deepEqual(await failing({ status: 401, error }), [
    ...[401, "invalid_api_key", "Incorrect API key provided", true],
    "Set a valid OPENAI_API_KEY, then start again.",
  ]);
  const quoted = { message: "What is vendor-secret?", code: "vendor-secret" };
  assert.deepEqual(await failing({ status: 400, error: quoted }), [
    ...[400, "", "", false],
    "Compare the entry of the model in the catalogue with the vendor's documentation.",
  ]);
  const [status, , , needsOperator, action] = await failing({ status: 500, error: { code: "server_error" } });
  assert.deepEqual([status, needsOperator], [500, false]);
  assert.match(String(action), /^Wait, then test it again/);

  const { detail } = await rpcFailure(operations.testModel({ model: "nobody" }));
  assert.deepEqual([detail?.code, detail?.field], ["not_found", "model"]);
  const pool = openPool(database.url, { max: 1 });
  const entries = await pool.query<{ details: object }>(
    "select details from audit where action = 'models.test' order by id",
  );
  await pool.end();
  assert.deepEqual(
    entries.map(({ details }) => details),
    [
      { model: "openai-fast", answered: true },
      { model: "openai-fast", answered: false, status: 401, code: "invalid_api_key" },
      { model: "openai-fast", answered: false, status: 400 },
      { model: "openai-fast", answered: false, status: 500, code: "server_error" },
    ],
  );
});

test("a test that succeeds brings back a model that failed", async ({ service, vendor, operator: { operations } }) => {
  const health = async () =>
    (await operations.listModels({})).models.find(({ name }) => name === "openai-fast")?.health;
  vendor.always({ status: 401, error: { code: "invalid_api_key" } });
  await service.post("/v1/generate", { prompt: "hello", effort: "low" });
  await until(async () => (await health()) === ModelHealth.DOWN);
  vendor.always({});
  assert.equal((await operations.testModel({ model: "openai-fast" })).answered, true);
  await until(async () => (await health()) !== ModelHealth.DOWN);
});

test("lists the replicas that run, until they stop", async ({ service, t, operator: { operations } }) => {
  const list = async () => (await operations.listReplicas({})).replicas;
  await until(async () => (await list()).length === 1);
  const other = await startOwnService(t, { databaseUrl: service.databaseUrl });
  await until(async () => (await list()).length === 2);
  const replicas = await list();
  assert.deepEqual(replicas.map(({ pid }) => pid).toSorted(), [service.process.pid, other.process.pid].toSorted());
  const [replica] = replicas;
  assert.match(replica?.version ?? "", /^\d+\.\d+\.\d+$/);
  assert.ok(replica && replica.memoryBytes > 1_000_000n && replica.startedAt && replica.reportedAt);
  assert.deepEqual(
    { ...replica.journal, $typeName: "" },
    {
      $typeName: "",
      waiting: 0n,
      damaged: 0n,
      refused: 0n,
      failures: 0n,
    },
  );
  assert.equal(await other.stop(), 0);
  assert.deepEqual(
    (await list()).map(({ pid }) => pid),
    [service.process.pid],
  );
});

test("shows what a replica has reserved of workspaces while a request runs", async ({ service, vendor, operator }) => {
  const grants = async () => (await operator.operations.listReplicas({})).replicas[0]?.grants;
  await until(async () => (await grants())?.workspaces === 0n);
  const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
  vendor.always(async () => {
    await mayAnswer;
    return { text: "hi" };
  });
  const before = Date.now();
  const answered = service.post("/v1/generate", { prompt: "hello", effort: "low" });
  await until(async () => (await grants())?.workspaces === 1n);
  const { reservedCredits = "", heldCredits = "", concurrentRequests, oldestAt } = (await grants()) ?? {};
  assert.ok(Number(heldCredits) > 0 && Number(reservedCredits) >= Number(heldCredits));
  assert.equal(concurrentRequests, 1n);
  assert.ok(oldestAt && Math.abs(timestampMs(oldestAt) - before) < 60_000);
  answer();
  assert.equal((await answered).status, 200);
  await until(async () => (await grants())?.workspaces === 0n);
  const after = await grants();
  assert.deepEqual([after?.reservedCredits, after?.heldCredits, after?.oldestAt], ["0", "0", undefined]);
});

test("lists workspaces with use and what stops them, in pages", async ({ service, vendor, operator }) => {
  vendor.reply({ text: ["hi"] });
  assert.equal((await service.post("/v1/generate", { prompt: "hello" })).status, 200);
  for (const name of ["a-limited", "b-poor", "c-new", "d-spent", "d-spent-granted"])
    await operator.workspaces.createWorkspace({ name });
  for (const workspace of ["a-limited", "c-new", "d-spent-granted"])
    await operator.credits.grant({ workspace, amount: "10", reference: "start" });
  const value = { case: "value", value: 0n } as const;
  await operator.workspaces.setLimits({
    workspace: "a-limited",
    overrides: [{ name: LimitName.REQUESTS_PER_DAY, change: value }],
  });
  for (const workspace of ["d-spent", "d-spent-granted"]) {
    await operator.credits.purchase({ workspace, amount: "10", reference: "bought" });
    await operator.credits.setSpendLimit({ workspace, period: SpendPeriod.DAY, amount: "0" });
  }
  const states = new Map<string, WorkspaceState>();
  for (let pageToken = ""; ; ) {
    const page = await operator.operations.listWorkspaceStates({ pageSize: 2, pageToken });
    for (const state of page.workspaces) states.set(state.workspace?.name ?? "", state);
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  assert.deepEqual([...states.keys()], ["a-limited", "b-poor", "c-new", "d-spent", "d-spent-granted", "default"]);
  const condition = (name: string) => states.get(name)?.condition;
  assert.equal(condition("a-limited"), WorkspaceCondition.LIMIT_REACHED);
  assert.deepEqual(states.get("a-limited")?.reachedLimits, [LimitName.REQUESTS_PER_DAY]);
  assert.equal(condition("b-poor"), WorkspaceCondition.NO_CREDIT);
  assert.equal(condition("c-new"), WorkspaceCondition.UNUSED);
  assert.equal(condition("d-spent"), WorkspaceCondition.SPEND_LIMIT_REACHED);
  assert.equal(condition("d-spent-granted"), WorkspaceCondition.UNUSED);
  assert.equal(condition("default"), WorkspaceCondition.OPEN);
  const { requests = 0n, credits = "" } = states.get("default") ?? {};
  assert.ok(requests >= 1n && Number(credits) > 0);
});

test("refuses owners", async ({ operator }) => {
  const { token } = await operator.workspaces.createOwnerToken({ workspace: "default" });
  const { operations } = operator.as(token);
  const calls = [
    operations.listModels({}),
    operations.testModel({ model: "openai-fast" }),
    operations.listReplicas({}),
    operations.listWorkspaceStates({}),
  ];
  for (const { detail } of await Promise.all(calls.map((call) => rpcFailure(call))))
    assert.equal(detail?.code, "missing_scope");
});
