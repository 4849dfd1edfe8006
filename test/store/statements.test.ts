import assert from "node:assert/strict";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "vitest";
import { createActivity } from "../../src/admin/activity.ts";
import { createAlertRules } from "../../src/admin/alerts.ts";
import { bootstrap } from "../../src/admin/bootstrap.ts";
import { createCredit } from "../../src/admin/credits.ts";
import { createUsage } from "../../src/admin/usage/usage.ts";
import { migrate } from "../../src/store/migrate.ts";
import { arrangePartitions } from "../../src/store/partitions.ts";
import type { Pool, Query } from "../../src/store/pool.ts";
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
    "store/gate.ts",
    "store/migrate.ts",
    "store/migrate.ts",
    "store/migrate.ts",
    "store/notifications.ts",
    "store/pool.ts",
  ]);
});

/** Calls every function that composes a statement, with all of its options. */
async function runComposed(pool: Pool): Promise<void> {
  const owner = { kind: "owner", id: "tok_1", workspaceId: "ws_1" } as const;
  const period = { from: new Date("2026-01-02T03:04:05Z"), to: new Date("2026-01-02T05:06:07Z") };
  const usage = { workspaceId: "ws_1", keyId: "key_1", ...period };
  const filter = { keyId: "key_1", outcome: "timed_out", level: "low" };
  await bootstrap({ ...pool, tx: (run) => run(pool.query) }, { apiKey: undefined, operatorToken: undefined });
  await createActivity(pool).generations(owner, { workspace: "", ...filter, ...period });
  await createActivity(pool).generations(owner, { workspace: "", outcome: "failed" });
  await createActivity(pool).audit(owner, { workspace: "" });
  await createCredit(pool).ledger(owner, { workspace: "", ...period });
  await createAlertRules(pool, () => undefined).deliveries(owner, { workspace: "" });
  await createUsage(pool).metrics({ ...usage, interval: "hour", byKey: true });
  await createUsage(pool).performance({ ...usage, interval: "hour" });
  await createUsage(pool).topKeys({ ...usage, count: 3 });
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
  await arrangePartitions(pool, Date.parse("2026-04-01"), 400);
  await arrangePartitions(pool, Date.parse("2028-04-01"), 400);
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
