import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readFile, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbedded } from "../../src/store/embedded/embedded.ts";
import { migrate } from "../../src/store/migrate.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import type { Lifetime } from "./lifetime.ts";
import { ask } from "./run.ts";

/** Statements of tests that read figures. They see what waits in the log, as callers do. */
const POST = `select post_settlements(array[workspace_id], clock) from periods
  where workspace_id in (select workspace_id from settlement_log)`;
const FIGURES = /\b(from|join) (accounts|generations|ledger|periods|usage)\b/;

/** The Postgres of the run. */
export interface TestServer {
  readonly url: string;
  /** Creates an empty, migrated database and returns its address. */
  create(): Promise<string>;
  /** Removes a database. Waits 5 s for its connections to end. @throws Error if one is still open then */
  drop(url: string): Promise<void>;
  close(): Promise<void>;
}

/** Uses the Postgres at TEST_DATABASE_URL, or starts one in a temporary folder, and creates the template database. */
export async function openTestServer(): Promise<TestServer> {
  const given = process.env.TEST_DATABASE_URL;
  const { url, copy, stop } = given
    ? { url: given, copy: "wal_log", stop: async () => undefined }
    : await startTemporary();
  const administrator = openPool(url, { max: 4, timeoutMs: 60_000 });
  const template = `chorus_template_${randomBytes(4).toString("hex")}`;
  await administrator.query(`create database ${template}`);
  const pool = openPool(databaseUrl(url, template));
  await migrate(pool);
  // A changed function, which the tests have to notice (tools/mutate/sql.ts).
  const mutant = process.env.CHORUS_TEST_MUTANT;
  if (mutant) await pool.query(await readFile(mutant, "utf8"));
  await pool.end();
  return {
    url,
    async create() {
      const name = `chorus_test_${randomBytes(6).toString("hex")}`;
      await administrator.query(`create database ${name} template ${template} strategy ${copy}`);
      return databaseUrl(url, name);
    },
    async drop(database) {
      await administrator.query(`drop database ${new URL(database).pathname.slice(1)}`);
    },
    async close() {
      if (given) await administrator.query(`drop database ${template}`);
      await administrator.end();
      await stop();
    },
  };
}

/**
 * Creates an empty, migrated database and a pool on it, in about 20 ms. Both are removed at the end of `t`. The test
 * fails if another connection is still open then.
 */
export async function testDatabase(t: Lifetime): Promise<{ url: string; pool: Pool }> {
  const url = await ask("create");
  // Statements of other tests can keep the server busy for longer than a statement of the service may take.
  const pool = openPool(url, { timeoutMs: 60_000 });
  t.onTestFinished(async () => {
    await pool.end();
    await ask("drop", url).catch((error: unknown) => {
      throw new Error("The test left a connection to its database open.", { cause: error });
    });
  });
  return { url, pool: withLog(pool) };
}

function withLog(pool: Pool): Pool {
  return {
    ...pool,
    async query<Row>(text: string, values?: readonly unknown[]) {
      if (FIGURES.test(text)) await pool.query(POST).catch(ignoreMissingTable);
      return pool.query<Row>(text, values);
    },
  };
}

/** Tests of migrations use earlier schemas. */
function ignoreMissingTable(error: unknown): void {
  if ((error as { code?: string }).code !== "42P01") throw error;
}

/** Free bytes that a folder in memory must have: the databases of the tests that run at once, and the log. */
const MEMORY_NEEDED = 2 ** 30;

/** A folder in memory, where creating and dropping a database takes a quarter of the processor time; or `tmpdir()`. */
async function fastFolder(): Promise<{ folder: string; isMemory: boolean }> {
  const free = await statfs("/dev/shm").then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= MEMORY_NEEDED ? { folder: "/dev/shm", isMemory: true } : { folder: tmpdir(), isMemory: false };
}

/** Test databases need no durability, no vacuum and no slow check of the password. */
const FAST = [
  ...["fsync", "full_page_writes", "autovacuum"].map((name) => `alter system set ${name} = off`),
  "alter system set max_wal_size = '256MB'",
  "select pg_reload_conf()",
];

async function startTemporary(): Promise<{ url: string; copy: string; stop(): Promise<void> }> {
  const { folder: parent, isMemory } = await fastFolder();
  const folder = await mkdtemp(join(parent, "chorus-test-"));
  await chmod(folder, 0o711);
  const server = await startEmbedded(folder, () => undefined);
  const { username, password } = new URL(server.url);
  const pool = openPool(server.url, { max: 1 });
  for (const statement of FAST) await pool.query(statement);
  await pool.tx(async (query) => {
    await query("set local scram_iterations = 1");
    await query(`alter role ${username} password '${password}'`);
  });
  await pool.end();
  return {
    url: server.url,
    // Copying files writes no log, but forces a checkpoint, which is cheap in memory only.
    copy: isMemory ? "file_copy" : "wal_log",
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function databaseUrl(url: string, name: string): string {
  const address = new URL(url);
  address.pathname = `/${name}`;
  return address.href;
}
