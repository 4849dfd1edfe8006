import assert from "node:assert/strict";
import { test } from "vitest";
import { WorkspaceCondition, WorkspaceOrder } from "../../gen/chorus/admin/v1/operations_pb.js";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { adminOf, type BackOffice } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";

/** The figures of a workspace, in credits. Several have the same, so that the identifier decides. */
const figuresOf = (i: number) => ({ balance: (i * 7) % 5, spend: (i * 3) % 4, created: (i * 11) % 6 });
const nameOf = (i: number) => `${["b", "a", "c"][i % 3]}-${i}`;

async function fill(pool: Pool, number: number): Promise<void> {
  for (let i = 0; i < number; i++) {
    const { balance, spend, created } = figuresOf(i);
    await pool.query("insert into workspaces (id, name, created_at) values ($1, $2, $3)", [
      ...[`ws_${i}`, nameOf(i), new Date(Date.UTC(2026, 0, 1 + created))],
    ]);
    await pool.query("insert into accounts (workspace_id, granted_micro, purchased_micro) values ($1, $2, $3)", [
      ...[`ws_${i}`, balance * 400_000, balance * 600_000],
    ]);
    if (spend > 0) {
      await pool.query(
        `insert into usage select $1, 'hour', date_trunc('hour', now() - i * interval '20 hours'), 'key_1',
           1, 2, 0, 0, 0, $2 from generate_series(0, 2) i`,
        [`ws_${i}`, spend * 1_000_000],
      );
    }
  }
}

type Request = Parameters<BackOffice["operations"]["listWorkspaceStates"]>[0];

async function list(office: BackOffice, request: Request): Promise<number[]> {
  const found: number[] = [];
  let pages = 0;
  for (let pageToken = ""; pageToken !== "" || pages === 0; pages++) {
    const page = await office.operations.listWorkspaceStates({ pageSize: 7, ...request, pageToken });
    assert.equal(page.totals === undefined, pages > 0);
    found.push(...page.workspaces.map(({ workspace }) => Number(workspace?.id.slice(3))));
    pageToken = page.nextPageToken;
  }
  return found;
}

test("lists each workspace once in each order, in pages, with the sums of all on the first page", async (t) => {
  const { pool } = await testDatabase(t);
  await fill(pool, 30);
  const office = adminOf(pool);
  const all = Array.from({ length: 30 }, (_, i) => i);
  const compare =
    <T extends string | number>(of: (i: number) => T) =>
    (a: number, b: number) =>
      of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : `ws_${a}` < `ws_${b}` ? -1 : 1;
  for (const [order, key] of [
    [WorkspaceOrder.UNSPECIFIED, nameOf],
    [WorkspaceOrder.NAME, nameOf],
    [WorkspaceOrder.CREATED, (i: number) => figuresOf(i).created],
    [WorkspaceOrder.BALANCE, (i: number) => figuresOf(i).balance],
    [WorkspaceOrder.SPEND, (i: number) => figuresOf(i).spend],
  ] as const) {
    const expected = all.toSorted(compare<string | number>(key));
    assert.deepEqual(await list(office, { order }), expected, WorkspaceOrder[order]);
    assert.deepEqual(await list(office, { order, descending: true }), expected.toReversed(), WorkspaceOrder[order]);
  }
  const named = await list(office, { order: WorkspaceOrder.SPEND, descending: true, name: "A-1" });
  assert.deepEqual(
    named.toSorted(compare(nameOf)),
    all.filter((i) => nameOf(i).startsWith("a-1")).sort(compare(nameOf)),
  );

  const sum = (of: (i: number) => number) => all.reduce((total, i) => total + of(i), 0);
  const { totals, workspaces } = await office.operations.listWorkspaceStates({});
  // Of three hours, one is older than a day.
  assert.deepEqual(
    { ...totals, $typeName: "" },
    {
      $typeName: "",
      workspaces: 30n,
      balance: String(sum((i) => figuresOf(i).balance)),
      requests: BigInt(sum((i) => (figuresOf(i).spend > 0 ? 2 : 0))),
      failedRequests: BigInt(sum((i) => (figuresOf(i).spend > 0 ? 4 : 0))),
      credits: String(sum((i) => figuresOf(i).spend * 2)),
    },
  );
  for (const { workspace, balance, credits } of workspaces) {
    const { balance: own, spend } = figuresOf(Number(workspace?.id.slice(3)));
    assert.deepEqual([balance, credits], [String(own), String(spend * 2)]);
  }
  const none = await office.operations.listWorkspaceStates({ name: "nothing" });
  assert.deepEqual([none.workspaces, none.totals?.workspaces, none.totals?.credits], [[], 0n, "0"]);
});

test("sums up whole hours in UTC in any time zone of the database", async (t) => {
  const { pool, url } = await testDatabase(t);
  // An hour of this zone begins a minute after that of UTC.
  await pool.query(`alter database ${new URL(url).pathname.slice(1)} set timezone = '<X>+00:01'`);
  const own = openPool(url, { max: 1 });
  t.onTestFinished(() => own.end());
  await own.query("insert into workspaces (id, name) values ('ws_1', 'one')");
  await own.query("insert into accounts (workspace_id) values ('ws_1')");
  await own.query(
    `insert into usage select 'ws_1', 'hour', date_trunc('hour', now() - interval '24 hours', 'UTC'), 'key_1',
       1, 2, 0, 0, 0, 0`,
  );
  const { workspaces } = await adminOf(own).operations.listWorkspaceStates({});
  assert.deepEqual([workspaces[0]?.requests, workspaces[0]?.failedRequests], [1n, 2n]);
});

test("refuses an unknown order and the token of another order", async (t) => {
  const { pool } = await testDatabase(t);
  await fill(pool, 3);
  const { operations } = adminOf(pool);
  const { nextPageToken: pageToken } = await operations.listWorkspaceStates({ pageSize: 1 });
  await operations.listWorkspaceStates({ pageSize: 1, pageToken });
  for (const [request, field] of [
    [{ pageToken, order: WorkspaceOrder.SPEND }, "page_token"],
    [{ pageToken, descending: true }, "page_token"],
    [{ order: 9 as WorkspaceOrder }, "order"],
    [{ name: "\0" }, "name"],
  ] as const)
    await assert.rejects(operations.listWorkspaceStates(request), { kind: "invalid_request", field });
});

test("no lack of credit stops a workspace where nothing costs anything", async (t) => {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) values ('ws_poor', 'poor'), ('ws_spent', 'spent')");
  await pool.query(
    `insert into accounts (workspace_id, granted_micro, purchased_micro, spend_limits)
     values ('ws_poor', 0, 0, '{}'), ('ws_spent', 0, 10, '{"day": 0}')`,
  );
  const conditions = async (rate: number) => {
    const rates = () => ({ input: rate, cached: rate, output: rate });
    const { workspaces } = await adminOf(pool, { rates }).operations.listWorkspaceStates({});
    return workspaces.map(({ condition }) => condition);
  };
  const { NO_CREDIT, SPEND_LIMIT_REACHED, UNUSED } = WorkspaceCondition;
  assert.deepEqual(await conditions(0), [UNUSED, UNUSED]);
  assert.deepEqual(await conditions(0.000001), [NO_CREDIT, SPEND_LIMIT_REACHED]);
});
