import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { ModelHealth, OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import { openPool } from "../../src/store/pool.ts";
import { png } from "../engine/attachments/files.ts";
import { test as base } from "../helpers/fixtures.ts";
import { rpcFailure, transportWith } from "../helpers/rpc.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import type { Reply, VendorCall } from "../helpers/vendors.ts";

function operationsOf({ rpcUrl, operatorToken }: Pick<TestService, "rpcUrl" | "operatorToken">) {
  return createClient(OperationsService, transportWith(rpcUrl, operatorToken));
}

const test = base
  .extend("operations", ({ service }) => operationsOf(service))
  /** Asks a question, and says which of the vendor's models were called. */
  .extend("called", ({ vendor }) => async (service: Pick<TestService, "post">, effort: string) => {
    vendor.calls.length = 0;
    const response = await service.post("/v1/generate", { prompt: "Write a poem about rain.", effort });
    const models = new Set(vendor.calls.map(({ json }) => String(json.model)));
    return { response, models: [...models] };
  });

test("no request calls a disabled model on any replica, also after a restart", async ({
  service,
  t,
  operations,
  called,
  vendor,
}) => {
  const [strong] = (await called(service, "high")).models;
  const [fast] = (await called(service, "low")).models;
  assert.ok(strong && fast && strong !== fast);
  const other = await startService(t, { databaseUrl: service.databaseUrl, env: vendor.env });

  const left = await operations.disableModel({ model: "openai-strong", reason: "answers nonsense" });
  assert.deepEqual([left.enabledModels, left.enabledInTier, left.tier], [1, 0, "strong"]);
  const { response, models } = await called(service, "high");
  assert.deepEqual([response.status, models], [200, [fast]], "at once where it was disabled");
  await until(async () => (await called(other, "high")).models.every((model) => model === fast));

  const [, row] = (await operations.listModels({})).models;
  assert.equal(row?.health, ModelHealth.DISABLED);
  const metrics = await (await fetch(`${other.rpcUrl}/metrics`)).text();
  assert.match(metrics, /^chorus_model_disabled\{model="openai-strong"\} 1$/m);
  assert.match(metrics, /^chorus_model_disabled\{model="openai-fast"\} 0$/m);
  assert.equal(row?.disabled?.reason, "answers nonsense");
  assert.match(row?.disabled?.actorId ?? "", /^tok_/);
  assert.ok(row?.disabled?.at);
  assert.equal((await operations.testModel({ model: "openai-strong" })).answered, true, "a test calls it");

  assert.equal(await other.stop(), 0);
  const again = await startService(t, { databaseUrl: service.databaseUrl, env: vendor.env });
  assert.deepEqual((await called(again, "high")).models, [fast]);
  assert.match(
    again.output(),
    /\n {2}Disabled: openai-strong\. No request calls them until `chorus models enable NAME`\./,
  );
  assert.match(again.output(), /"models":\["openai-strong"\],"msg":"models are disabled"/);

  const there = operationsOf({ rpcUrl: again.rpcUrl, operatorToken: service.operatorToken });
  assert.equal((await there.enableModel({ model: "openai-strong" })).wasDisabled, true);
  assert.deepEqual((await called(again, "high")).models, [strong]);
  await until(async () => (await called(service, "high")).models.includes(strong));
});

test("records who has disabled and enabled a model, and why", async ({ operations, database }) => {
  await operations.disableModel({ model: "openai-fast", reason: "first" });
  await operations.disableModel({ model: "openai-fast", reason: "second" });
  const [row] = (await operations.listModels({})).models;
  assert.equal(row?.disabled?.reason, "second");
  await operations.enableModel({ model: "openai-fast" });
  assert.equal((await operations.enableModel({ model: "openai-fast" })).wasDisabled, false);
  const pool = openPool(database.url, { max: 1 });
  const rows = await pool.query<{ action: string; details: object }>(
    `select action, details from audit
     where action like 'models.%able' and details ->> 'model' = 'openai-fast' order by id`,
  );
  await pool.end();
  const model = "openai-fast";
  assert.deepEqual(rows, [
    { action: "models.disable", details: { model, reason: "first" } },
    { action: "models.disable", details: { model, reason: "second" } },
    { action: "models.enable", details: { model } },
  ]);
});

test("says why no request is answered while all models are disabled", async ({
  service,
  operations,
  called,
  vendor,
}) => {
  const ready = async () => (await fetch(`${service.url}/readyz`)).json();
  assert.deepEqual(await ready(), { status: "ok" });
  await operations.disableModel({ model: "openai-fast" });
  const left = await operations.disableModel({ model: "openai-strong" });
  assert.deepEqual([left.enabledModels, left.enabledInTier], [0, 0]);
  try {
    const { response, models } = await called(service, "low");
    assert.deepEqual([response.status, models], [502, []]);
    assert.equal(response.headers.get("retry-after"), null);
    const { code, message } = (await response.json()) as Record<string, string>;
    assert.equal(code, "upstream_failed");
    assert.match(message ?? "", /^No model could answer: all are disabled\. Waiting does not help; the operator must/);
    for (const [more, which] of OTHER_REQUESTS) {
      const other = await service.post("/v1/generate", { prompt: "What is it?", effort: "low", ...more });
      const failed = (await other.json()) as Record<string, string>;
      assert.deepEqual([other.status, failed.code], [502, "upstream_failed"], JSON.stringify(more));
      assert.ok(failed.message?.startsWith(`${which} could answer: all are disabled.`), failed.message);
    }
    assert.deepEqual(vendor.calls, []);
    const { status, reason, message: why } = (await ready()) as Record<string, string>;
    assert.deepEqual([status, reason], ["ok", "models_disabled"]);
    assert.match(why ?? "", /`chorus models enable`/);
  } finally {
    for (const model of ["openai-fast", "openai-strong"]) await operations.enableModel({ model });
  }
  assert.deepEqual(await ready(), { status: "ok" });
  assert.equal((await called(service, "low")).response.status, 200);
});

const file = (media_type: string, data: string | Uint8Array) => ({
  attachments: [{ media_type, data: Buffer.from(data).toString("base64") }],
});
const OTHER_REQUESTS: [more: object, which: string][] = [
  [file("image/png", png(9, 9)), "No model that sees images"],
  [file("text/plain", "hi"), "No model"],
  [{ output_shape: "extract" }, "No model"],
  [{ response_format: { type: "json_schema", schema: { type: "object" } } }, "No model"],
  [{ tools: [{ name: "look", parameters: { type: "object" } }] }, "No model"],
];

test("an enabled model is called at once, also if its circuit was open", async ({
  service,
  operations,
  called,
  vendor,
}) => {
  const [strong] = (await called(service, "high")).models;
  const failing = ({ json }: VendorCall): Reply => (json.model === strong ? { status: 500 } : {});
  vendor.always(failing);
  await until(async () => !(await called(service, "high")).models.includes(strong ?? ""));
  await operations.disableModel({ model: "openai-strong" });
  vendor.always({});
  await operations.enableModel({ model: "openai-strong" });
  assert.deepEqual((await called(service, "high")).models, [strong]);
});

test("refuses unknown models and long reasons", async ({ operations }) => {
  for (const change of [operations.disableModel, operations.enableModel, operations.resetLearned]) {
    for (const model of ["nobody", "a\0"]) {
      const { detail } = await rpcFailure(change({ model }));
      assert.deepEqual([detail?.code, detail?.field], ["not_found", "model"]);
    }
  }
  const { detail } = await rpcFailure(operations.disableModel({ model: "openai-fast", reason: "a".repeat(201) }));
  assert.deepEqual([detail?.code, detail?.field], ["invalid_request", "reason"]);
});
