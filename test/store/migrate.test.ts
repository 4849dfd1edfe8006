import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { migrate } from "../../src/store/migrate.ts";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

const OURS = join(import.meta.dirname, "../../src/store/migrations");
const NEWEST = readdirSync(OURS).length;

/** Name of a migration that comes so many after the newest. */
function later(many: number): string {
  return `${String(NEWEST + many).padStart(6, "0")}.sql`;
}

test("several replicas that start at once on an empty database all succeed, and each migration runs once", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query("drop schema public cascade");
  await pool.query("create schema public");
  const replicas = Array.from({ length: 6 }, () => openPool(url, { max: 2 }));
  await Promise.all(replicas.map((replica) => migrate(replica)));
  await Promise.all(replicas.map((replica) => replica.end()));
  assert.deepEqual(
    await pool.query("select id, breaking from chorus_migrations order by id"),
    Array.from({ length: NEWEST }, (_, i) => ({ id: i + 1, breaking: false })),
  );
  await migrate(pool);
});

test("a migration is applied whole or not at all, and a later start tries it again", async (t) => {
  const { pool } = await testDatabase(t);
  const folder = await migrations(t, { [later(1)]: "create table half (id integer);\nselect 1 / 0;" });
  await assert.rejects(migrate(pool, folder), /division by zero/);
  assert.deepEqual(await pool.query("select to_regclass('half') as half"), [{ half: null }]);
  await writeFile(join(folder, later(1)), "create table half (id integer);");
  await migrate(pool, folder);
  assert.deepEqual(await pool.query("select to_regclass('half')::text as half"), [{ half: "half" }]);
});

test("a program refuses a database that has seen a breaking migration it does not know, and no other", async (t) => {
  const { pool } = await testDatabase(t);
  await migrate(pool, await migrations(t, { [later(1)]: "create table extra (id integer);" }));
  await migrate(pool);
  await migrate(pool, await migrations(t, { [later(1)]: "", [later(2)]: "--! breaking-change\ndrop table extra;" }));
  await assert.rejects(
    migrate(pool),
    new RegExp(`schema ${NEWEST + 2}, and this version of Chorus knows schemas up to ${NEWEST}\\. Run a newer version`),
  );
});

test("a database that cannot be reached is said to be so", async () => {
  for (const host of ["127.0.0.1", "localhost"]) {
    const pool = openPool(`postgres://user:secret@${host}:1/db`);
    await assert.rejects(migrate(pool), /cannot be reached: .*ECONNREFUSED.*Check DATABASE_URL/);
    await pool.end();
  }
});

test("tables that grow with use lead with the workspace in their primary keys", async (t) => {
  const { pool } = await testDatabase(t);
  const rows = await pool.query<{ name: string; first: string }>(
    `select c.relname as name, a.attname as first from pg_index i join pg_class c on c.oid = i.indrelid
     join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0] where i.indisprimary and c.relname in ('api_keys', 'generations')`,
  );
  assert.deepEqual(
    rows.map(({ first }) => first),
    ["workspace_id", "workspace_id"],
  );
});

async function migrations(t: Lifetime, added: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-migrations-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  await cp(OURS, folder, { recursive: true });
  for (const [name, sql] of Object.entries(added)) await writeFile(join(folder, name), sql);
  return folder;
}
