import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import type { Pool } from "../../src/store/pool.ts";
import { openBrowser } from "../helpers/browser.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";
import { rpcFailure, transportWith } from "../helpers/rpc.ts";
import type { TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { createWorkspace } from "../helpers/workspaces.ts";

const test = base.extend("env", { scope: "file" }, OFFLINE);

/** Clients of the internal listener with an operator or owner token. */
function admin({ rpcUrl }: TestService, token: string) {
  const transport = transportWith(rpcUrl, token);
  return {
    workspaces: createClient(WorkspaceService, transport),
    credits: createClient(CreditService, transport),
    usage: createClient(UsageService, transport),
  };
}

/**
 * Runs a function while every statement that reads a table waits.
 * @param run gets a function that counts the statements of callers that wait. Maintenance also reads these tables, in
 *   database functions such as `raise_alerts`, so that the text of its statements does not name them
 */
async function whileLocked(pool: Pool, table: string, run: (waiting: () => Promise<number>) => Promise<void>) {
  await pool.tx(async (query) => {
    await query(`lock table ${table} in access exclusive mode`);
    await run(async () => {
      const rows = await pool.query<{ count: bigint }>(
        `select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query ~ $1`,
        [`from ${table}\\M`],
      );
      return Number(rows[0]?.count);
    });
  });
}

/** Requests that hold their share of the connections, wait for it, or are refused. */
const FLOOD = 150;

test("leaves connections for operators, owners and other workspaces under a flood of reports", async ({
  service,
  database: { pool },
}) => {
  const key = await createWorkspace(service, "flooding");
  const other = await createWorkspace(service, "quiet");
  const operator = admin(service, service.operatorToken);
  const { token } = await operator.workspaces.createOwnerToken({ workspace: "flooding" });
  let reports: Promise<Response>[] = [];
  await whileLocked(pool, "usage", async (waiting) => {
    let refused = 0;
    reports = Array.from({ length: FLOOD }, async () => {
      const response = await service.get("/v1/metrics", { "x-api-key": key });
      if (response.status === 503) refused++;
      return response;
    });
    await until(() => refused > 0);
    await until(async () => (await waiting()) === 2);
    assert.equal((await openBrowser(service.url).signIn(token)).status, 200);
    assert.equal((await operator.workspaces.getWorkspace({ workspace: "flooding" })).workspace?.name, "flooding");
    assert.equal((await admin(service, token).workspaces.getWorkspace({})).workspace?.name, "flooding");
    assert.equal((await service.get("/v1/quotas", { "x-api-key": other })).status, 200);
    assert.equal(await waiting(), 2, "one workspace has two connections at most");
  });
  const statuses = Map.groupBy(await Promise.all(reports), ({ status }) => status);
  assert.deepEqual(new Set(statuses.keys()), new Set([200, 503]));
  for (const response of statuses.get(503) ?? []) assert.ok(Number(response.headers.get("retry-after")) >= 1);
  const metrics = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  const shed = /chorus_requests_shed_total\{cause="administration"\} (\d+)/.exec(metrics)?.[1];
  assert.equal(Number(shed), statuses.get(503)?.length);
});

test("leaves connections for operators and sign-ins under a flood of an owner's calls", async ({
  service,
  database: { pool },
}) => {
  await createWorkspace(service, "owned");
  await createWorkspace(service, "other");
  const operator = admin(service, service.operatorToken);
  const { token } = await operator.workspaces.createOwnerToken({ workspace: "owned" });
  const { token: otherToken } = await operator.workspaces.createOwnerToken({ workspace: "other" });
  const owner = admin(service, token);
  let calls: Promise<string>[] = [];
  await whileLocked(pool, "generations", async (waiting) => {
    let refused = 0;
    calls = Array.from({ length: FLOOD }, async () => {
      const code = await owner.usage.getPerformance({}).then(
        () => "ok",
        async (error) => (await rpcFailure(Promise.reject(error))).code,
      );
      if (code !== "ok") refused++;
      return code;
    });
    await until(() => refused > 0);
    await until(async () => (await waiting()) === 2);
    assert.equal((await openBrowser(service.url).signIn(otherToken)).status, 200);
    await operator.credits.grant({ workspace: "owned", amount: "1", reference: "during the flood" });
    assert.equal(await waiting(), 2, "an owner has two connections at most");
  });
  assert.deepEqual(new Set(await Promise.all(calls)), new Set(["ok", "Unavailable"]));
});
