import assert from "node:assert/strict";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { Outcome } from "../../gen/chorus/admin/v1/activity_pb.js";
import { Effort, MetricsGroupBy, MetricsInterval } from "../../gen/chorus/v1/generation_pb.js";
import { bootstrap } from "../../src/admin/bootstrap.ts";
import { migrate } from "../../src/store/migrate.ts";
import { arrangePartitions } from "../../src/store/partitions.ts";
import type { Pool, Query } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { makeAccount } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { callSites } from "../helpers/statements.ts";

const sites = callSites();

test("prepares every constant statement of the code", async (t) => {
  const { pool } = await testDatabase(t);
  const failed: string[] = [];
  for (const { place, parts = [] } of sites) {
    const [statement = "", ...rest] = parts;
    // Only queries can be prepared. The others change the schema or the session, and every test database ran them.
    if (rest.length > 0 || !/^\s*(select|insert|update|delete|with)\b/.test(statement)) continue;
    await pool
      .tx(async (query) => {
        await query(`prepare statement as ${statement}`);
        await query("deallocate statement");
      })
      .catch((error: Error) => failed.push(`${place}: ${error.message}`));
  }
  assert.deepEqual(failed, []);
});

test("runs every statement that is composed at run time", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1");
  const sent: string[] = [];
  const recording =
    (query: Query): Query =>
    async <Row>(text: string, values?: readonly unknown[]): Promise<Row[]> => {
      sent.push(text);
      return query<Row>(text, values);
    };
  const recorded: Pool = {
    ...pool,
    query: recording(pool.query),
    tx: (run, options) => pool.tx((query) => run(recording(query)), options),
  };
  await runComposed(recorded);
  const missing = sites.filter(({ parts = [] }) => {
    const pattern = new RegExp(`^${parts.map((part) => RegExp.escape(part)).join("[^]*")}$`);
    return parts.length > 1 && !sent.some((text) => pattern.test(text));
  });
  assert.deepEqual(
    missing.map(({ place }) => place),
    [],
    "runComposed() below must send these statements",
  );
});

test("finds a literal at every call of query, except in pool, gate, migration and LISTEN", () => {
  const others = sites.filter(({ parts }) => parts === undefined).map(({ place }) => place.replace(/:.*/, ""));
  assert.deepEqual(others, [
    "store/migrate.ts",
    "store/migrate.ts",
    "store/migrate.ts",
    "store/notifications.ts",
    "store/open.ts",
    "store/pool.ts",
    "store/pool.ts",
  ]);
});

/** Calls every function that composes a statement, with all of its options. */
async function runComposed(pool: Pool): Promise<void> {
  const owner = { kind: "owner", id: "tok_1", workspaceId: "ws_1" } as const;
  const startTime = timestampFromDate(new Date("2026-01-02T03:04:05Z"));
  const endTime = timestampFromDate(new Date("2026-01-02T05:06:07Z"));
  const period = { startTime, endTime, keyId: "key_1" };
  const hours = { ...period, interval: MetricsInterval.HOUR };
  const timedOut = { case: "failureCode", value: "timed_out" } as const;
  const failed = { case: "outcome", value: Outcome.FAILED } as const;
  await bootstrap({ ...pool, tx: (run) => run(pool.query) }, { apiKey: undefined, operatorToken: undefined });
  const { activity, caps, credits, alerts, operations, usage } = adminOf(pool);
  const developer = { kind: "member", id: "per_1", workspaceId: "ws_1", role: "developer" } as const;
  await caps.listCaps({}, developer);
  await usage.getUsage(hours, developer);
  await activity.listGenerations({ ...period, ended: timedOut, level: Effort.LOW }, owner);
  await activity.listGenerations({ ended: failed }, owner);
  await activity.listAudit({}, owner);
  await activity.listAudit({}, { kind: "operator", id: "tok_1" });
  await credits.listLedger({ startTime, endTime }, owner);
  await credits.listLedger({ kinds: [1] }, owner);
  await credits.listLedgerHours({ startTime, endTime }, owner);
  await alerts.listAlertDeliveries({}, owner);
  await operations.listWorkspaceStates({});
  await usage.getUsage({ ...hours, groupBy: MetricsGroupBy.KEY }, owner);
  await usage.getPerformance(hours, owner);
  await usage.listTopKeys({ startTime, endTime, pageSize: 3 }, owner);
  await usage.listTopSubjects({ startTime, endTime }, owner);
  await usage.listTopSubjects({ startTime, endTime, groupBy: MetricsGroupBy.USER, search: "u" }, owner);
  await usage.listTagNames({}, owner);
  await usage.exportUsage({ startTime, endTime }, owner);
  await usage.exportUsage({ startTime, endTime, groupBy: MetricsGroupBy.USER }, owner);
  // Creates partitions, moves rows out of the default one, deletes rows of an old month, and drops partitions.
  for (const [id, at] of [
    ["gen_old", "2020-01-01"],
    ["gen_new", "2026-03-01"],
  ]) {
    await pool.query(
      `insert into generations
       values ('ws_1', $2, $1, $1, 'key_1', false, 'text', 'auto', 'low', 1, 1, 0, 0, 'ok', 'stop', 1)`,
      [id, at],
    );
  }
  await arrangePartitions(pool, Date.parse("2026-04-01"), 400, 30);
  await arrangePartitions(pool, Date.parse("2028-04-01"), 400, 30);
  await migrateWithout(pool, "check_books.sql");
}

/** Migrates without one of the functions, which drops it. */
async function migrateWithout(pool: Pool, name: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-migrations-"));
  try {
    for (const part of ["migrations", "functions"]) {
      await cp(resolve(import.meta.dirname, "../../src/store", part), join(folder, part), { recursive: true });
    }
    await rm(join(folder, "functions", name));
    await migrate(pool, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}
