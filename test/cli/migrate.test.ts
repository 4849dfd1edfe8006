import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { migrateDatabase } from "../../src/cli/migrate-database.ts";
import { SETUP_LOCK } from "../../src/store/migrate.ts";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import { startEarly } from "../helpers/starting.ts";
import { until } from "../helpers/until.ts";

const STORE = join(import.meta.dirname, "../../src/store");
const MIGRATIONS = readdirSync(join(STORE, "migrations")).length;
const FUNCTIONS = readdirSync(join(STORE, "functions")).length;

test("chorus migrate creates the schema, then changes nothing, without a running service", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query("drop schema public cascade");
  await pool.query("create schema public");
  const first = await runCli(["migrate"], { DATABASE_URL: url });
  assert.deepEqual([first.code, first.stderr], [0, ""]);
  assert.equal(first.stdout.match(/^Applied migration \d+\.$/gm)?.length, MIGRATIONS);
  assert.match(first.stdout, /^Updated functions: .*exchange/m);
  const second = { code: 0, stdout: "The schema is up to date.\n", stderr: "" };
  assert.deepEqual(await runCli(["migrate"], { DATABASE_URL: url }), second);
  await pool.query("delete from chorus_functions");
  const { stdout } = await runCli(["migrate", "--json"], { DATABASE_URL: url });
  const { migrations, functions } = JSON.parse(stdout);
  assert.deepEqual([migrations, functions.length], [[], FUNCTIONS]);
});

test("chorus migrate says what is wrong and exits with code 1", async (t) => {
  const { url } = await testDatabase(t);
  const absent = new URL(url);
  absent.pathname = "/absent";
  const cases: [env: Record<string, string>, message: RegExp][] = [
    [{}, /^chorus: DATABASE_URL is not set\./],
    [{ DATABASE_URL_FILE: "/nothing" }, /^chorus: DATABASE_URL_FILE names \/nothing, which cannot be read\./],
    [
      { DATABASE_URL: "host=db user=chorus password=secret" },
      /^chorus: DATABASE_URL must start with postgres:\/\/[^=]+$/,
    ],
    [{ DATABASE_URL: '"postgres://u:secret@db/chorus"' }, /^chorus: DATABASE_URL must start with postgres:\/\/[^@]+$/],
    [{ DATABASE_URL: "postgres://host:port/db" }, /^chorus: DATABASE_URL must be an address/],
    [{ DATABASE_URL: absent.href }, /^chorus: The database refuses this service: .*absent/],
  ];
  for (const [env, message] of cases) {
    const { code, stdout, stderr } = await runCli(["migrate"], env);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, message);
  }
});

test("a service with CHORUS_MIGRATE=never changes no schema and waits for chorus migrate", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query("drop schema public cascade");
  await pool.query("create schema public");
  const service = await startEarly(t, { DATABASE_URL: url, CHORUS_MIGRATE: "never" });
  await until(() => service.output().includes("waiting until the schema"));
  assert.match(service.output(), /The database lacks migration 1, 2,.* Run \\"chorus migrate\\"/);
  assert.deepEqual(await Promise.all([service.status("/healthz"), service.status("/readyz")]), [200, 503]);
  assert.deepEqual(await pool.query("select from pg_class where relname = 'workspaces'"), []);
  assert.equal((await runCli(["migrate"], { DATABASE_URL: url })).code, 0);
  await until(async () => (await service.status("/readyz")) === 200);
  assert.equal(await service.stop(), 0);

  await pool.query("update chorus_functions set checksum = '' where name = 'exchange'");
  const later = await startEarly(t, { DATABASE_URL: url, CHORUS_MIGRATE: "never" });
  await until(() => later.output().includes("lacks function exchange"));
  assert.equal(await later.stop(), 0);
});

test("chorus migrate limits the wait for the database, not that for another migration", async (t) => {
  const { pool, url } = await testDatabase(t);
  const outstanding = await pool.tx(async (query) => {
    await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
    const migrated = migrateDatabase(url, 1_000);
    const waitEnds = once(AbortSignal.timeout(1_500), "abort");
    await until(async () => (await query("select from pg_locks where not granted")).length > 0);
    await waitEnds;
    return { migrated };
  });
  assert.deepEqual(await outstanding.migrated, { migrations: [], functions: [] });
});

test("chorus migrate waits for a database that takes no changes yet, as after a failover", async (t) => {
  const { pool, url } = await testDatabase(t);
  const setting = `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only`;
  await pool.query(`${setting} = on`);
  const migrated = migrateDatabase(url, 10_000);
  const isRefused = migrateDatabase(url, 100).catch(({ message }: Error) => message);
  assert.match(String(await isRefused), /read-only transaction|not available within/);
  await pool.query(`${setting} = off`);
  assert.deepEqual(await migrated, { migrations: [], functions: [] });
});
