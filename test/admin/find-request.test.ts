import assert from "node:assert/strict";
import { test } from "vitest";
import { newGenerationId } from "../../src/contract/generation-id.ts";
import { newRequestId } from "../../src/contract/request-id.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import { plansOf } from "../helpers/query-plans.ts";

const MINUTE = 60_000;

/** A request of `ws_1` or another workspace. */
async function add(pool: Pool, workspace: string, requestId: string, admitted: number): Promise<string> {
  const id = newGenerationId(admitted);
  await pool.query(
    `insert into generations
     values ($1, $2, $3, $4, 'key_1', false, 'text', 'auto', 'low', 1, 1, 0, 0, 'ok', 'stop', 1)`,
    [workspace, new Date(admitted), id, requestId],
  );
  return id;
}

const OWNER = { kind: "owner", id: "tok_1", workspaceId: "ws_1" } as const;

async function open(pool: Pool) {
  for (const n of [1, 2]) await pool.query("insert into workspaces (id, name) values ($1, $1)", [`ws_${n}`]);
  const { activity } = adminOf(pool);
  return async (id: string) => (await activity.getRun({ id }, OWNER)).generation?.id;
}

test("finds a request whose body arrived for long, but none of another workspace and none out of bounds", async (t) => {
  const { pool } = await testDatabase(t);
  const show = await open(pool);
  const arrived = Date.now() - 100 * MINUTE;
  const unknown = { kind: "unknown_entity", field: "id" };
  for (const [afterMs, isFound] of [
    [-2 * MINUTE, false],
    [-50_000, true],
    [0, true],
    [2 * MINUTE, true],
    [70 * MINUTE, true],
    [81 * MINUTE, false],
  ] as const) {
    const requestId = newRequestId(arrived);
    const id = await add(pool, "ws_1", requestId, arrived + afterMs);
    if (isFound) assert.equal(await show(requestId), id);
    else await assert.rejects(show(requestId), unknown);
    assert.equal(await show(id), id);
  }
  const other = newRequestId(arrived);
  await add(pool, "ws_2", other, arrived);
  await assert.rejects(show(other), unknown);
  for (const id of [newRequestId(), `req_${"f".repeat(32)}`, "req_", "req_1"]) await assert.rejects(show(id), unknown);
});

test("refuses the identifier of a request where a text is deleted or read", async (t) => {
  const { pool } = await testDatabase(t);
  await open(pool);
  const { activity } = adminOf(pool);
  const requestId = newRequestId();
  await add(pool, "ws_1", requestId, Date.now());
  await assert.rejects(activity.deleteRunText({ texts: { case: "id", value: requestId } }, OWNER), {
    kind: "invalid_request",
    field: "id",
  });
  await assert.rejects(activity.getRunText({ id: requestId }, OWNER), { kind: "unknown_entity", field: "id" });
});

test("looks at the requests of one workspace in the minutes after the arrival, by the primary key", async (t) => {
  const { pool, url } = await testDatabase(t);
  await open(pool);
  const arrived = Date.now() - 60 * MINUTE;
  await pool.query(
    `insert into generations
     select 'ws_' || 1 + i % 2, $1::timestamptz + i * interval '100 milliseconds', 'gen_' || i, 'req_' || i, 'key_1',
       false, 'text', 'auto', 'low', 1, 1, 0, 0, 'ok', 'stop', 1 from generate_series(0, 20000) i`,
    [new Date(arrived)],
  );
  const requestId = newRequestId(arrived);
  await add(pool, "ws_1", requestId, arrived + 10_050);
  await pool.query("vacuum analyze");
  const plans = await plansOf(url, async (client) => {
    const query: Pool["query"] = async (text, values) => (await client.query(text, values && [...values])).rows;
    await adminOf({ ...pool, query }).activity.getRun({ id: requestId }, OWNER);
  });
  const scans = plans.filter(({ statement }) => /request_id = \$4/.test(statement)).flatMap((plan) => plan.scans);
  assert.deepEqual(
    scans.map(({ condition, rows }) => [/workspace_id = .*created_at/.test(condition), rows > 0 && rows <= 601]),
    [[true, true]],
  );
});
