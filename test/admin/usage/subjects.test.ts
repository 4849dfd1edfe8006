import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { MetricsGroupBy, MetricsInterval, MetricsRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { readMetrics } from "../../../src/admin/usage/metrics.ts";
import type { Pool } from "../../../src/store/pool.ts";
import { postOf, recordIn } from "../../helpers/exchange.ts";
import { test } from "../../helpers/fixtures.ts";
import { until } from "../../helpers/until.ts";

interface Request {
  user?: string;
  tags?: Record<string, string>;
  charge: number;
  hour: number;
}

let count = 0;

/** Settles requests of a new workspace. */
async function record(pool: Pool, requests: readonly Request[]): Promise<string> {
  const workspace = `ws_subjects_${++count}`;
  await pool.query("insert into workspaces (id, name) values ($1, $1)", [workspace]);
  await pool.query(
    `with a as (insert into accounts (workspace_id, granted_micro) values ($1, 1000000000)),
       b as (insert into bookings (workspace_id, reference, kind, amount_micro, at)
         values ($1, 'g', 'grant', 1000000000, now()))
     insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro)
     values ($1, now(), 'grant', 'g', 1000000000, 0)`,
    [workspace],
  );
  const posts = requests.map(({ user, tags, charge, hour }, i) =>
    postOf(`req_${i}`, {
      charge,
      ...{ created_at: new Date(Date.UTC(2026, 2, 1, hour, 30)), key_id: "key_1", input_tokens: 10, outcome: "ok" },
      ...(user === undefined ? {} : { end_user: user }),
      ...(tags ? { tags } : {}),
    }),
  );
  await recordIn(pool, workspace, posts);
  return workspace;
}

/** The points of March 2026 by hour, as [hour, group, credits in millionths], and the total of credits. */
async function points(pool: Pool, workspaceId: string, groupBy: MetricsGroupBy, groupTag = "") {
  const period = { from: "2026-03-01T00:00:00Z", to: "2026-03-02T00:00:00Z" };
  const request = create(MetricsRequestSchema, { interval: MetricsInterval.HOUR, groupBy, groupTag });
  const [startTime, endTime] = [period.from, period.to].map((time) => ({
    $typeName: "google.protobuf.Timestamp" as const,
    ...{ seconds: BigInt(Date.parse(time) / 1_000), nanos: 0 },
  }));
  assert.ok(startTime && endTime);
  const { totals, series } = await readMetrics(pool, { ...request, startTime, endTime }, { workspaceId, keyId: "" });
  const rows = series.map(({ start, user, tag, credits }) => {
    const hour = Number(((start?.seconds ?? 0n) % 86_400n) / 3_600n);
    return [hour, user ?? tag, Math.round(credits * 1e6)] as const;
  });
  return { rows, total: Math.round((totals?.credits ?? 0) * 1e6) };
}

test("usage by user and by tag is that of the requests, and the books agree", async ({ database: { pool } }) => {
  const text = fc.constantFrom("a", "a=b", "b:c", "ü", "%", "a_", "😀");
  const request = fc.record(
    {
      user: text,
      tags: fc.dictionary(fc.constantFrom("team", "tea", "team.x"), text, { minKeys: 1, maxKeys: 3 }),
      charge: fc.integer({ min: 0, max: 1_000 }),
      hour: fc.integer({ min: 0, max: 2 }),
    },
    { requiredKeys: ["charge", "hour"] },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 12 }), async (requests) => {
      const workspace = await record(pool, requests);
      const expected = (groupOf: (request: Request) => string | undefined) => {
        const sums = new Map<string, number>();
        for (const one of requests) {
          const group = groupOf(one);
          if (group === undefined) continue;
          const name = JSON.stringify([one.hour, group]);
          sums.set(name, (sums.get(name) ?? 0) + one.charge);
        }
        return [...sums].map(([name, sum]) => [...JSON.parse(name), sum]);
      };
      const sorted = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted();
      const total = requests.reduce((sum, { charge }) => sum + charge, 0);
      const byUser = await points(pool, workspace, MetricsGroupBy.USER);
      assert.deepEqual(sorted(byUser.rows), sorted(expected(({ user }) => user)));
      const byTag = await points(pool, workspace, MetricsGroupBy.TAG, "team");
      assert.deepEqual(sorted(byTag.rows), sorted(expected(({ tags }) => tags?.team)));
      assert.deepEqual([byUser.total, byTag.total], [total, total]);
      assert.deepEqual(await pool.query("select * from check_books($1)", [workspace]), []);
    }),
    { numRuns: 15 },
  );
});

test("check_books reports usage of a subject that differs from its requests", async ({ database: { pool } }) => {
  const workspace = await record(pool, [{ user: "u", tags: { team: "a" }, charge: 5, hour: 1 }]);
  for (const [subject, unit] of [
    ["user:u", "minute"],
    ["tag:team=a", "day"],
  ]) {
    const change = (by: number) =>
      pool.query(
        `update usage_subjects set credits_micro = credits_micro + $1
         where workspace_id = $2 and subject = $3 and unit = $4`,
        [by, workspace, subject, unit],
      );
    await change(1);
    const found = await pool.query<{ check_name: string; subject: string }>("select * from check_books($1)", [
      workspace,
    ]);
    assert.ok(
      found.some(({ check_name, subject: of }) => check_name === `usage by ${unit}` && of.startsWith(`${subject} `)),
    );
    await change(-1);
  }
  assert.deepEqual(await pool.query("select * from check_books($1)", [workspace]), []);
});

test("GET /v1/metrics splits by user and by tag", async ({ service }) => {
  const ask = (user: string, team: string) => service.post("/v1/generate", { prompt: "Hello", user, tags: { team } });
  for (const [user, team] of [
    ["u-1", "search"],
    ["u-2", "search"],
    ["u-2", "ads"],
  ] as const)
    assert.equal((await ask(user, team)).status, 200);
  const read = async (query: string) => {
    const response = await service.get(`/v1/metrics?interval=month&${query}`);
    return { status: response.status, ...((await response.json()) as { field?: string; series: object[] }) };
  };
  const groups = async (query: string, member: string) => {
    const { series } = await read(query);
    return (series as Record<string, unknown>[]).map((point) => [point[member], point.requests]);
  };
  await until(async () => (await groups("group_by=user", "user")).length === 2);
  await until(async () => {
    const found = await groups("group_by=tag:team", "tag");
    return JSON.stringify(found) === '[["ads",1],["search",2]]';
  });
  assert.deepEqual(await groups("group_by=user", "user"), [
    ["u-1", 1],
    ["u-2", 2],
  ]);
  assert.deepEqual(await groups("group_by=tag&group_tag=team", "tag"), await groups("group_by=tag:team", "tag"));
  assert.deepEqual(await groups("group_by=tag:other", "tag"), []);
  for (const [query, field] of [
    ["group_by=tag", "group_by"],
    ["group_by=tag:", "group_by"],
    ["group_by=tag:Team", "group_by"],
    ["group_by=user:x", "group_by"],
    ["group_by=key&group_tag=team", "group_by"],
    ["group_by=team", "group_by"],
  ]) {
    const failure = await read(query ?? "");
    assert.deepEqual([failure.status, failure.field], [422, field], query);
  }
});
