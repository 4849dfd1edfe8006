import assert from "node:assert/strict";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import { MetricsInterval } from "../../gen/chorus/v1/generation_pb.js";
import { ModelHours } from "../../src/admin/model-hours.ts";
import { openPool } from "../../src/store/pool.ts";
import { createTelemetry } from "../../src/telemetry/create.ts";
import { callsOf } from "../../src/telemetry/report.ts";
import { testDatabase } from "../helpers/database.ts";
import { test as base } from "../helpers/fixtures.ts";
import { rpcFailure, transportWith } from "../helpers/rpc.ts";
import { until } from "../helpers/until.ts";

const HOUR = 3_600_000;
/** Start of the period of the tests. */
const FROM = Date.UTC(2026, 9, 30, 22);

const test = base
  .extend("env", { scope: "file" }, { CHORUS_USD_PER_CREDIT: "0.02" })
  .extend("operations", ({ service: { rpcUrl, operatorToken } }) =>
    createClient(OperationsService, transportWith(rpcUrl, operatorToken)),
  );

test("sums up use, charges and costs over all workspaces and replicas", async ({ operations, database }) => {
  const pool = openPool(database.url, { max: 1 });
  await pool.query("insert into workspaces (id, name) select 'ws_' || i, 'name-' || i from generate_series(1, 12) i");
  await pool.query(
    `insert into usage select 'ws_' || w, unit, date_trunc(unit, $1::timestamptz + h * interval '1 hour', 'UTC'),
       'key_1', 10 * count(*), count(*), 0, 0, 0, w * 1000000 * count(*)
     from generate_series(1, 12) w, generate_series(0, 2) h, unnest(array['hour', 'day']) unit group by w, 2, 3`,
    [new Date(FROM)],
  );
  await pool.query(
    `insert into model_hours select $1::timestamptz + h * interval '1 hour', model, 5, 1, usd
     from generate_series(0, 2) h, (values ('cheap', 0.25), ('dear', 1.5)) m (model, usd)`,
    [new Date(FROM)],
  );
  await pool.end();
  const period = { startTime: timestampFromMs(FROM + 60_000), endTime: timestampFromMs(FROM + 1.5 * HOUR) };
  const hours = await operations.getServiceUsage(period);
  assert.deepEqual(
    [hours.startTime, hours.endTime].map((time) => time && timestampMs(time)),
    [FROM, FROM + 2 * HOUR],
  );
  const { $typeName: _, ...totals } = hours.totals ?? {};
  assert.deepEqual(totals, {
    ...{ requests: 240n, failedRequests: 24n, credits: "156" },
    ...{ calls: 20n, failedCalls: 4n, costUsd: 3.5 },
  });
  assert.deepEqual(
    hours.points.map(({ start, figures }) => [start && timestampMs(start), figures?.requests, figures?.costUsd]),
    [
      [FROM, 120n, 1.75],
      [FROM + HOUR, 120n, 1.75],
    ],
  );
  assert.deepEqual(
    hours.points.map(({ models }) => models.map(({ name, calls, costUsd }) => [name, calls, costUsd]).sort()),
    [FROM, FROM + HOUR].map(() => [
      ["cheap", 5n, 0.25],
      ["dear", 5n, 1.5],
    ]),
  );
  assert.deepEqual(
    hours.workspaces.map(({ name }) => name),
    [12, 11, 10, 9, 8, 7, 6, 5, 4, 3].map((i) => `name-${i}`),
  );
  assert.equal(hours.workspaces[0]?.credits, "24");
  assert.deepEqual(
    hours.models.map(({ name, calls, costUsd }) => [name, calls, costUsd]),
    [
      ["dear", 10n, 3],
      ["cheap", 10n, 0.5],
    ],
  );
  assert.equal(hours.usdPerCredit, 0.02);

  const days = await operations.getServiceUsage({
    ...{ startTime: timestampFromMs(FROM), endTime: timestampFromMs(FROM + 3 * HOUR) },
    interval: MetricsInterval.DAY,
  });
  assert.deepEqual(
    days.points.map(({ figures }) => [figures?.requests, figures?.calls]),
    [
      [240n, 20n],
      [120n, 10n],
    ],
  );
});

test("counts the calls of a replica", async ({ operations, service, vendor }) => {
  const response = await service.post("/v1/generate", { prompt: "hello", effort: "low" });
  assert.equal(response.status, 200);
  vendor.always({ status: 400 });
  await service.post("/v1/generate", { prompt: "hello", effort: "low" });
  // Replicas report every ten seconds.
  await until(async () => ((await operations.getServiceUsage({})).totals?.failedCalls ?? 0n) > 0n);
  const { totals, models } = await operations.getServiceUsage({});
  assert.ok((totals?.calls ?? 0n) > (totals?.failedCalls ?? 0n));
  assert.equal(totals?.requests, 1n);
  assert.equal(models[0]?.name, "openai-fast");
});

test("refuses a period and an interval that it cannot show", async ({ operations }) => {
  const failed = async (request: Parameters<typeof operations.getServiceUsage>[0]) => {
    const { code, detail } = await rpcFailure(operations.getServiceUsage(request));
    return [code, detail?.field];
  };
  assert.deepEqual(await failed({ interval: MetricsInterval.MINUTE }), ["InvalidArgument", "interval"]);
  assert.deepEqual(await failed({ startTime: timestampFromMs(0) }), ["InvalidArgument", "interval"]);
  const at = timestampFromMs(FROM);
  assert.deepEqual(await failed({ startTime: at, endTime: at }), ["InvalidArgument", "from"]);
});

test("adds each call once, also when the database did not answer", async ({ t }) => {
  const { pool } = await testDatabase(t);
  let isAway = false;
  const query: typeof pool.query = async (text, values) => {
    if (isAway) throw new Error("away");
    return pool.query(text, values);
  };
  const hours = new ModelHours({ query });
  const counted = (calls: number, failed: number, usd: number) => new Map([["m", { calls, failed, refused: 0, usd }]]);
  const kept = async () => {
    const rows = await pool.query("select sum(calls)::int as calls, sum(failed_calls)::int as failed from model_hours");
    return rows[0];
  };
  await hours.add(counted(2, 1, 0.5));
  isAway = true;
  await assert.rejects(hours.add(counted(3, 1, 0.75)));
  isAway = false;
  await hours.add(counted(5, 2, 1));
  await hours.add(counted(5, 2, 1));
  assert.deepEqual(await kept(), { calls: 5, failed: 2 });
  await new ModelHours(pool).add(counted(1, 0, 0));
  assert.deepEqual(await kept(), { calls: 6, failed: 2 });
});

test("counts the calls of a model once that leaves the catalogue and comes back", async ({ onTestFinished }) => {
  const { pool } = await testDatabase({ onTestFinished });
  const telemetry = createTelemetry();
  const state = {
    model: "m",
    tier: "fast",
    vendor: "openai",
    isOpen: false,
    isDisabled: false,
    failedShare: 0,
  } as const;
  let catalogue = [{ ...state, running: 0, waiting: 0 }];
  telemetry.watchModels(() => catalogue);
  const call = { model: "m", tier: "fast", outcome: "ok", source: "reported", usd: 0.5 } as const;
  const end = () =>
    telemetry.modelCall({ ...call, inputTokens: 1, cachedTokens: 0, outputTokens: 1, thinkingTokens: 0 });
  const hours = new ModelHours(pool);
  const report = async () => {
    await hours.add(callsOf(await telemetry.snapshot()));
    const rows = await pool.query("select sum(calls)::int as calls, sum(cost_usd) as usd from model_hours");
    return rows[0];
  };
  end();
  assert.deepEqual(await report(), { calls: 1, usd: 0.5 });
  const all = catalogue;
  catalogue = [];
  // This call began before the model left.
  end();
  assert.deepEqual(await report(), { calls: 2, usd: 1 });
  catalogue = all;
  assert.deepEqual(await report(), { calls: 2, usd: 1 });
});
