import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { isUnavailable, type Pool, type Query } from "./pool.ts";

/** First line of a migration after which programs that do not know it must not run. */
const BREAKING = "--! breaking-change";

/**
 * The advisory lock under which the schema, the first rows and the tiers are written. Any number that no other lock
 * uses.
 */
export const SETUP_LOCK = 4_207_849_484n;

/** Timeout of one statement of a migration, in milliseconds. */
const TIMEOUT_MS = 600_000;

/**
 * Longest wait for another replica that migrates, in milliseconds. After it, this replica gives its connection back, so
 * that many replicas that start at once do not use up the connections of the server.
 */
const LOCK_MS = 2_000;

/** SQLSTATE of a missing right (PostgreSQL documentation, appendix A). */
const NOT_PERMITTED = "42501";

/**
 * SQLSTATE of `create or replace function` when parameter names or the return type differ (PostgreSQL documentation,
 * appendix A).
 */
const CANNOT_REPLACE = "42P13";

/** Migrations and functions that a database does not have yet, or did not have before `migrate`. */
export interface Outstanding {
  readonly migrations: readonly number[];
  /** Names of functions to create, replace or drop. */
  readonly functions: readonly string[];
}

/** The schema is older than this version of Chorus needs, and this process may not change it. */
export class OutdatedSchema extends Error {
  override name = "OutdatedSchema";
}

/**
 * Brings the database to the newest schema, in one transaction:
 * 1. Applies, in order, the files `migrations/000001_TOPIC.sql`, … that it has not seen. They hold tables, indexes
 *    and types.
 * 2. Replaces the functions whose file `functions/NAME.sql` has changed since it was applied, and drops those whose
 *    file is gone. Each file holds one `create or replace function NAME`. A program leaves the functions alone when the
 *    database has seen a migration that it does not know, because they then belong to a newer version. So add a
 *    migration, even an empty one, when you change a function in a way that earlier versions cannot work with.
 *
 * Safe when several processes start at once: one applies, the others wait for it and then fail with an error of
 * `isLocked`.
 * @param lockMs longest wait for another process, in milliseconds
 * @returns what it applied
 * @throws Error when it has seen a breaking migration that this program does not know, or when the role may not create
 *   tables
 */
export async function migrate(
  pool: Pool,
  folder: string = import.meta.dirname,
  lockMs: number = LOCK_MS,
): Promise<Outstanding> {
  const schema = readSchema(folder);
  try {
    return await pool.tx(
      async (query) => {
        await query(`set local lock_timeout = ${lockMs}`);
        await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
        await query("set local lock_timeout = 0");
        await query(`create table if not exists chorus_migrations (
          id integer primary key, breaking boolean not null, applied_at timestamptz not null default now())`);
        await query("create table if not exists chorus_functions (name text primary key, checksum text not null)");
        const outstanding = await readOutstanding(query, schema);
        for (const id of outstanding.migrations) await applyMigration(query, id, schema.migrations.get(id) ?? "");
        await applyFunctions(query, outstanding.functions, schema.functions);
        return outstanding;
      },
      { timeoutMs: TIMEOUT_MS },
    );
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || isUnavailable(error)) throw error;
    const advice =
      error.code === NOT_PERMITTED
        ? "Let the role create tables in it."
        : "Use a database of its own for Chorus, or restore a backup.";
    throw new Error(`The schema of the database in DATABASE_URL cannot be updated: ${error.message}. ${advice}`, {
      cause: error,
    });
  }
}

/**
 * Checks that nothing is outstanding, without a change.
 * @throws OutdatedSchema that says what to do; Error as `migrate`
 */
export async function checkSchema(pool: Pool, folder: string = import.meta.dirname): Promise<void> {
  const schema = readSchema(folder);
  const [found] = await pool.query("select where to_regclass('chorus_migrations') is not null");
  const { migrations, functions } = found
    ? await readOutstanding(pool.query, schema)
    : { migrations: [...schema.migrations.keys()], functions: [] };
  if (migrations.length === 0 && functions.length === 0) return;
  const missing = migrations.length > 0 ? `migration ${migrations.join(", ")}` : `function ${functions.join(", ")}`;
  throw new OutdatedSchema(
    `The database lacks ${missing}. Run "chorus migrate" of this version; CHORUS_MIGRATE=never forbids it here.`,
  );
}

interface Schema {
  readonly migrations: ReadonlyMap<number, string>;
  readonly functions: ReadonlyMap<string, string>;
}

function readSchema(folder: string): Schema {
  const read = (part: string, pattern: RegExp): [name: string, text: string][] => {
    const files = readdirSync(join(folder, part)).filter((name) => pattern.test(name));
    return files.sort().map((file) => [file, readFileSync(join(folder, part, file), "utf8")]);
  };
  const migrations = read("migrations", /^\d{6}_\w+\.sql$/).map(
    ([file, sql]) => [Number(file.slice(0, 6)), sql] as const,
  );
  const functions = read("functions", /^\w+\.sql$/).map(([file, sql]) => [file.slice(0, -4), sql] as const);
  return { migrations: new Map(migrations), functions: new Map(functions) };
}

/** @throws Error when the database has seen a breaking migration that this program does not know */
async function readOutstanding(query: Query, { migrations, functions }: Schema): Promise<Outstanding> {
  const applied = await query<{ id: number; breaking: boolean }>("select id, breaking from chorus_migrations");
  const newest = Math.max(0, ...migrations.keys());
  const unknown = applied.filter(({ id }) => id > newest);
  checkKnown(unknown, newest);
  const seen = new Set(applied.map(({ id }) => id));
  const rows = await query<{ name: string; checksum: string }>("select name, checksum from chorus_functions");
  const checksums = new Map(rows.map(({ name, checksum }) => [name, checksum]));
  const names = new Set([...checksums.keys(), ...functions.keys()]);
  const isOutstanding = (name: string) => checksums.get(name) !== checksumOf(functions.get(name));
  return {
    migrations: [...migrations.keys()].filter((id) => !seen.has(id)),
    // The functions of a newer version stay as they are.
    functions: unknown.length > 0 ? [] : [...names].filter(isOutstanding),
  };
}

function checksumOf(sql: string | undefined): string | undefined {
  return sql === undefined ? undefined : createHash("sha256").update(sql).digest("hex");
}

function checkKnown(unknown: { id: number; breaking: boolean }[], newest: number): void {
  const breaking = unknown.filter((migration) => migration.breaking).map(({ id }) => id);
  if (breaking.length === 0) return;
  throw new Error(
    `The database has schema ${Math.max(...breaking)}, but this version of Chorus supports schemas up to ${newest}. ` +
      "Run a newer version.",
  );
}

async function applyMigration(query: Query, id: number, sql: string): Promise<void> {
  await query(sql);
  await query("insert into chorus_migrations (id, breaking) values ($1, $2)", [id, sql.startsWith(BREAKING)]);
}

async function applyFunctions(
  query: Query,
  names: readonly string[],
  functions: ReadonlyMap<string, string>,
): Promise<void> {
  // A function may call one that is created after it.
  await query("set local check_function_bodies = off");
  for (const name of names) {
    const sql = functions.get(name);
    if (sql === undefined) {
      await dropFunctions(query, await signaturesOf(query, name));
      await query("delete from chorus_functions where name = $1", [name]);
      continue;
    }
    await replaceFunction(query, name, sql);
    await query(
      `insert into chorus_functions (name, checksum) values ($1, $2)
       on conflict (name) do update set checksum = excluded.checksum`,
      [name, checksumOf(sql)],
    );
  }
}

/**
 * Replaces a function in place where Postgres can, because a call that runs at the same time can fail when the function
 * is dropped. Drops the earlier signature otherwise.
 */
async function replaceFunction(query: Query, name: string, sql: string): Promise<void> {
  const before = await signaturesOf(query, name);
  await query("savepoint replace_function");
  try {
    await query(sql);
  } catch (error) {
    if ((error as { code?: string }).code !== CANNOT_REPLACE) throw error;
    await query("rollback to savepoint replace_function");
    await dropFunctions(query, before);
    await query(sql);
  }
  const after = await signaturesOf(query, name);
  // With other parameter types, Postgres has created a second function of the same name.
  if (after.length > 1) await dropFunctions(query, before);
}

async function signaturesOf(query: Query, name: string): Promise<string[]> {
  const rows = await query<{ signature: string }>(
    `select oid::regprocedure::text as signature from pg_proc
     where proname = $1 and pronamespace = quote_ident(current_schema())::regnamespace`,
    [name],
  );
  return rows.map(({ signature }) => signature);
}

async function dropFunctions(query: Query, signatures: string[]): Promise<void> {
  for (const signature of signatures) await query(`drop function ${signature}`);
}
