import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { migrate } from "../../src/store/migrate.ts";
import { isUnavailable, openPool, type Pool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

const STORE = join(import.meta.dirname, "../../src/store");
const NEWEST = readdirSync(join(STORE, "migrations")).length;

/** Name of a migration that comes `count` after the newest. */
function later(count: number): string {
  return `migrations/${String(NEWEST + count).padStart(6, "0")}_test.sql`;
}

/** Migrates as a service does: again, while another replica does it for longer than one waits. */
async function migrateAs(replica: Pool, folder?: string): Promise<void> {
  await until(async () => {
    try {
      await migrate(replica, folder);
      return true;
    } catch (error) {
      if (isUnavailable(error)) return false;
      throw error;
    }
  });
}

test("runs each migration once when several replicas start at the same time on an empty database", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query("drop schema public cascade");
  await pool.query("create schema public");
  const replicas = Array.from({ length: 6 }, () => openPool(url, { max: 2 }));
  await Promise.all(replicas.map((replica) => migrateAs(replica)));
  await Promise.all(replicas.map((replica) => replica.end()));
  assert.deepEqual(
    await pool.query("select id from chorus_migrations order by id"),
    Array.from({ length: NEWEST }, (_, i) => ({ id: i + 1 })),
  );
  await migrate(pool);
});

test("each migration has a number of its own, without gaps", () => {
  const numbers = readdirSync(join(STORE, "migrations")).map((name) => Number(name.slice(0, 6)));
  assert.deepEqual(
    numbers.toSorted((a, b) => a - b),
    numbers.map((_, i) => i + 1),
  );
});

/** Of headroom of subjects. */
const SUBJECT_GRANTS = ["000027_subject_grants", "000029_subject_grants_key"];

/** Creates a database that lacks migrations. */
async function databaseWithout(t: Lifetime, ...migrations: string[]): Promise<Pool> {
  const { pool } = await testDatabase(t);
  await pool.query("drop schema public cascade");
  await pool.query("create schema public");
  const folder = await copyMigrations(t, {});
  for (const migration of migrations) await rm(join(folder, `migrations/${migration}.sql`));
  await migrate(pool, folder);
  return pool;
}

test("ends the leases of requests that an earlier version has admitted", async (t) => {
  const pool = await databaseWithout(t, "000009_end_of_leases");
  await pool.query("insert into accounts (workspace_id, granted_micro, held_micro, running) values ('ws_1', 10, 4, 1)");
  await pool.query("insert into leases values ('ws_1', 'req_1', 'r', 4, null, now())");
  await pool.query(
    "insert into ledger (workspace_id, at, kind, reference, held_micro) values ('ws_1', now(), 'hold', 'req_1', 4)",
  );
  await migrate(pool);
  const rows = await pool.query("select kind, reference, held_micro as held from ledger order by id");
  assert.deepEqual(rows, [
    { kind: "hold", reference: "req_1", held: 4n },
    { kind: "release", reference: "req_1", held: -4n },
  ]);
  assert.deepEqual(await pool.query("select held, running from in_use('ws_1')"), [{ held: 0n, running: 0 }]);
});

test("posts the settlements that an earlier version has appended to its log", async (t) => {
  const pool = await databaseWithout(t, "000016_log_of_items", ...SUBJECT_GRANTS);
  await pool.query("insert into accounts (workspace_id, granted_micro) values ('ws_1', 100)");
  await pool.query(
    `insert into settlement_log (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level,
       input_tokens, output_tokens, cached_tokens, credits_micro, outcome, latency_ms, replica, seq, held_micro,
       running_now, used_requests, used_input)
     select 'ws_1', now(), 'gen_' || i, 'req_' || i, 'key_1', false, 'text', 'auto', 'low',
       1, 2, 0, 10, 'ok', 5, 'r1', 7, 0, 0, 0, 0 from generate_series(1, 2) i`,
  );
  await migrate(pool);
  assert.deepEqual(await pool.query("select post_settlements('{ws_1}') as posted"), [{ posted: 2n }]);
  const posted = await pool.query(
    "select id, output_tokens as output, granted_micro as left from generations, accounts",
  );
  assert.deepEqual(posted, [
    { id: "gen_1", output: 2n, left: 80n },
    { id: "gen_2", output: 2n, left: 80n },
  ]);
});

test("posts under caps what a version has appended that reserves nothing for subjects", async (t) => {
  const pool = await databaseWithout(t, ...SUBJECT_GRANTS);
  await pool.query("insert into accounts (workspace_id, granted_micro) values ('ws_1', 100)");
  await pool.query(
    `insert into caps (workspace_id, id, subject, figure, period, amount, action, created_at)
     values ('ws_1', 'cap_1', 'user:u', 'credits', 'day', 30, 'refuse', now())`,
  );
  await pool.query(
    `insert into subject_periods values ('ws_1', 'user:u', now(), '{1,1,1,1,1}', '{1,1,1,1,1}', '{0,0,0,0,0}',
       '{0,0,0,0,0}')`,
  );
  await pool.query(`insert into grants values ('ws_1', 'r1', 1, 7, now(), 20, 20, 1, 1, 0, 0, 0, '{}')`);
  await pool.query("insert into subject_holds values ('ws_1', 'req_1', 'user:u', 1, 20)");
  await pool.query(
    `insert into settlement_log select 'ws_1', 'r1', 8, 10, 2, 10, 0, 0, 0, json_build_array(json_build_object(
       'created_at', now(), 'id', 'gen_1', 'request_id', 'req_1', 'key_id', 'key_1', 'end_user', 'u',
       'streamed', false, 'shape', 'text', 'effort', 'auto', 'level', 'low', 'input_tokens', 1, 'output_tokens', 2,
       'cached_tokens', 0, 'credits_micro', 10, 'outcome', 'ok', 'latency_ms', 5))`,
  );
  await migrate(pool);
  assert.deepEqual(await pool.query("select post_settlements('{ws_1}') as posted"), [{ posted: 1n }]);
  assert.deepEqual(
    await pool.query("select amount, used, held, reserved, has_idle from cap_use('ws_1', 'user:u', clock_timestamp())"),
    [{ amount: 30n, used: 10n, held: 0n, reserved: 0n, has_idle: false }],
  );
});

test("applies a migration completely or not at all, and tries it again at the next start", async (t) => {
  const { pool } = await testDatabase(t);
  const folder = await copyMigrations(t, { [later(1)]: "create table half (id integer);\nselect 1 / 0;" });
  await assert.rejects(migrate(pool, folder), /division by zero/);
  assert.deepEqual(await pool.query("select to_regclass('half') as half"), [{ half: null }]);
  await writeFile(join(folder, later(1)), "create table half (id integer);");
  await migrate(pool, folder);
  assert.deepEqual(await pool.query("select to_regclass('half')::text as half"), [{ half: "half" }]);
});

test("refuses a database only if a breaking migration that it does not know has run there", async (t) => {
  const { pool } = await testDatabase(t);
  await migrate(pool, await copyMigrations(t, { [later(1)]: "create table extra (id integer);" }));
  await migrate(pool);
  await migrate(
    pool,
    await copyMigrations(t, { [later(1)]: "", [later(2)]: "--! breaking-change\ndrop table extra;" }),
  );
  await assert.rejects(
    migrate(pool),
    new RegExp(
      `schema ${NEWEST + 2}, but this version of Chorus supports schemas up to ${NEWEST}\\. Run a newer version`,
    ),
  );
});

test("applies a function when its text has changed, and only then", async (t) => {
  const { pool } = await testDatabase(t);
  const folder = await copyMigrations(t, { "functions/one.sql": one("1") });
  await migrate(pool, folder);
  assert.equal(await resultOf(pool), 1);
  const before = await versionsOf(pool);
  await migrate(pool, folder);
  assert.deepEqual(await versionsOf(pool), before);
  await writeFile(join(folder, "functions/one.sql"), one("2"));
  await migrate(pool, folder);
  assert.equal(await resultOf(pool), 2);
  const after = await versionsOf(pool);
  assert.notEqual(after.get("one"), before.get("one"));
  assert.deepEqual(new Map(after).set("one", before.get("one") ?? ""), before);
});

test("replaces a function whose parameters or return type have changed", async (t) => {
  const { pool } = await testDatabase(t);
  const folder = await copyMigrations(t, {});
  for (const sql of [
    one("1"),
    "create or replace function one(n int default 2) returns int language sql as 'select n'",
    "create or replace function one(m int default 3) returns int language sql as 'select m'",
    "create or replace function one(m int default 3) returns text language sql as 'select m::text'",
  ]) {
    await writeFile(join(folder, "functions/one.sql"), sql);
    await migrate(pool, folder);
    assert.equal((await pool.query("select from pg_proc where proname = 'one'")).length, 1);
  }
  assert.deepEqual(await pool.query("select one()"), [{ one: "3" }]);
});

test("drops a function whose file was removed", async (t) => {
  const { pool } = await testDatabase(t);
  const folder = await copyMigrations(t, { "functions/one.sql": one("1") });
  await migrate(pool, folder);
  await rm(join(folder, "functions/one.sql"));
  await migrate(pool, folder);
  assert.deepEqual(await pool.query("select from pg_proc where proname = 'one'"), []);
  assert.deepEqual(await pool.query("select from chorus_functions where name = 'one'"), []);
});

test("creates a function before another one that it calls", async (t) => {
  const { pool } = await testDatabase(t);
  const calls = "create or replace function a() returns int language sql as 'select z()'";
  const folder = await copyMigrations(t, {
    "functions/a.sql": calls,
    "functions/z.sql": one("4").replace("one()", "z()"),
  });
  await migrate(pool, folder);
  assert.deepEqual(await pool.query("select a()"), [{ a: 4 }]);
});

test("changes nothing when one function cannot be created", async (t) => {
  const { pool } = await testDatabase(t);
  const folder = await copyMigrations(t, {
    [later(1)]: "create table extra ()",
    "functions/one.sql": "create nonsense",
  });
  await assert.rejects(migrate(pool, folder), /syntax error/);
  assert.deepEqual(await pool.query("select to_regclass('extra') as extra"), [{ extra: null }]);
});

test("leaves the functions of a newer schema alone", async (t) => {
  const { pool } = await testDatabase(t);
  await migrate(pool, await copyMigrations(t, { [later(1)]: "", "functions/one.sql": one("1") }));
  await migrate(pool);
  assert.equal(await resultOf(pool), 1);
});

test("applies changed functions once when several replicas start at the same time", async (t) => {
  const { pool, url } = await testDatabase(t);
  const folder = await copyMigrations(t, {
    "functions/one.sql": one("1"),
    "functions/two.sql": one("2").replace("one", "two"),
  });
  await migrate(pool, folder);
  await rm(join(folder, "functions/two.sql"));
  await writeFile(join(folder, "functions/one.sql"), one("5"));
  const replicas = Array.from({ length: 4 }, () => openPool(url, { max: 2 }));
  await Promise.all(replicas.map((replica) => migrateAs(replica, folder)));
  await Promise.all(replicas.map((replica) => replica.end()));
  assert.equal(await resultOf(pool), 5);
  assert.deepEqual(await pool.query("select from pg_proc where proname = 'two'"), []);
});

test("takes the schema of the search path, whatever its name is", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query('create schema "Chorus-prod"');
  const own = openPool(`${url}?options=-c%20search_path%3D%22Chorus-prod%22`, { max: 2 });
  t.onTestFinished(() => own.end());
  await migrate(own, await copyMigrations(t, { "functions/one.sql": one("1") }));
  await migrate(own, await copyMigrations(t, { "functions/one.sql": one("5") }));
  assert.deepEqual(await own.query('select "Chorus-prod".one() as result'), [{ result: 5 }]);
});

test("names each function after its file, and its body matches the tables", async (t) => {
  const { pool } = await testDatabase(t);
  const files = readdirSync(join(STORE, "functions"));
  const found = await pool.query<{ name: string }>(
    "select proname as name from pg_proc where pronamespace = 'public'::regnamespace order by 1",
  );
  assert.deepEqual(found.map(({ name }) => `${name}.sql`).sort(), files.sort());
  // Postgres checks the bodies here. It does not check them during a migration.
  for (const file of files) await pool.query(readFileSync(join(STORE, "functions", file), "utf8"));
});

test("starts the primary keys of growing tables with the workspace", async (t) => {
  const { pool } = await testDatabase(t);
  const rows = await pool.query<{ name: string; first: string }>(
    `select c.relname as name, a.attname as first from pg_index i join pg_class c on c.oid = i.indrelid
     join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
     where i.indisprimary and c.relname in ('api_keys', 'generations')`,
  );
  assert.deepEqual(
    rows.map(({ first }) => first),
    ["workspace_id", "workspace_id"],
  );
});

/** SQL of a function `one` that returns a number. */
function one(result: string): string {
  return `create or replace function one() returns int language sql as 'select ${result}'`;
}

async function resultOf(pool: Pool): Promise<number | undefined> {
  const [row] = await pool.query<{ one: number }>("select one()");
  return row?.one;
}

/** The transaction that wrote each function. */
async function versionsOf(pool: Pool): Promise<Map<string, string>> {
  const rows = await pool.query<{ proname: string; xmin: string }>(
    "select proname, xmin::text from pg_proc where pronamespace = 'public'::regnamespace",
  );
  return new Map(rows.map(({ proname, xmin }) => [proname, xmin]));
}

/** Copies the project's migrations and functions to a temporary folder and adds files. */
async function copyMigrations(t: Lifetime, added: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-migrations-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  for (const name of ["migrations", "functions"]) await cp(join(STORE, name), join(folder, name), { recursive: true });
  for (const [name, sql] of Object.entries(added)) await writeFile(join(folder, name), sql);
  return folder;
}
