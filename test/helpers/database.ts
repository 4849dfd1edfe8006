import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbedded } from "../../src/store/embedded/embedded.ts";
import { migrate } from "../../src/store/migrate.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import type { Lifetime } from "./lifetime.ts";

/** Environment variable with the address at which test processes ask for the Postgres of the run. */
export const SERVER_VARIABLE = "CHORUS_TEST_SERVER";

/** Statements of tests that read figures. They see what waits in the log, as callers do. */
const POST = `select post_settlements(array[workspace_id], clock) from periods
  where workspace_id in (select workspace_id from settlement_log)`;
const FIGURES = /\b(from|join) (accounts|generations|ledger|periods|usage)\b/;

export interface TestServer {
  /** Address of the database that statements like `create database` are sent to. */
  url: string;
  /** Name of a migrated, empty database. */
  template: string;
  close(): Promise<void>;
}

/** Uses the Postgres at TEST_DATABASE_URL, or starts one in a temporary folder, and creates the template database. */
export async function openTestServer(): Promise<TestServer> {
  const given = process.env.TEST_DATABASE_URL;
  const { url, stop } = given ? { url: given, stop: async () => undefined } : await startTemporary();
  const template = `chorus_template_${randomBytes(4).toString("hex")}`;
  await administer(url, `create database ${template}`);
  const pool = openPool(databaseUrl(url, template));
  await migrate(pool);
  await pool.end();
  return {
    url,
    template,
    async close() {
      if (given) await administer(url, `drop database ${template}`);
      await stop();
    },
  };
}

/**
 * Creates an empty, migrated database and a pool on it, in about 50 ms. Both are removed at the end of `t`. The test
 * fails if another connection is still open then.
 * Uses Postgres's default copy strategy: file_copy is no faster here and forces checkpoints on other tests.
 */
export async function testDatabase(t: Lifetime): Promise<{ url: string; pool: Pool }> {
  const server = await currentServer();
  const name = `chorus_test_${randomBytes(6).toString("hex")}`;
  await administer(server.url, `create database ${name} template ${server.template}`);
  const url = databaseUrl(server.url, name);
  const pool = openPool(url);
  t.onTestFinished(async () => {
    await pool.end();
    // Without force: Postgres waits 5 s for connections to end, then refuses.
    await administer(server.url, `drop database ${name}`).catch((error: unknown) => {
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

/** The server of the run, which the first call starts. */
async function currentServer(): Promise<{ url: string; template: string }> {
  const response = await fetch(process.env[SERVER_VARIABLE] ?? "");
  if (!response.ok) throw new Error(`Postgres did not start: ${await response.text()}`);
  return (await response.json()) as { url: string; template: string };
}

async function startTemporary(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-test-"));
  await chmod(folder, 0o711);
  const server = await startEmbedded(folder, () => undefined);
  // Test databases need no durability. Without it creating one takes a third of the processor time.
  const settings = ["fsync", "full_page_writes"].map((name) => `alter system set ${name} = off`);
  await administer(server.url, ...settings, "select pg_reload_conf()");
  return {
    url: server.url,
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

async function administer(url: string, ...statements: string[]): Promise<void> {
  const pool = openPool(url, { max: 1, timeoutMs: 60_000 });
  try {
    for (const statement of statements) await pool.query(statement);
  } finally {
    await pool.end();
  }
}
