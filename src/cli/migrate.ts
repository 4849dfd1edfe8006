import type { Command } from "commander";
import { createLog } from "../log.ts";
import { whenAvailable } from "../store/await-database.ts";
import { migrate, type Outstanding } from "../store/migrate.ts";
import { checkServer, openPool } from "../store/pool.ts";
import { CliError, wantsJson } from "./clients.ts";
import { printJson } from "./print.ts";

/** Longest wait for the database, and for another process that migrates it, in milliseconds. */
const WAIT_MS = 60_000;

/** `chorus migrate`: brings the schema of the database in DATABASE_URL up to date. It needs no running service. */
export function addMigrate(program: Command): void {
  program
    .command("migrate")
    .description("bring the schema of the database in DATABASE_URL up to date; needs no running service")
    .action(async (_: unknown, command: Command) => {
      const { migrations, functions } = await migrateDatabase();
      if (wantsJson(command)) return printJson({ migrations: [...migrations], functions: [...functions] });
      for (const id of migrations) console.log(`Applied migration ${id}.`);
      if (functions.length > 0) console.log(`Updated functions: ${functions.join(", ")}.`);
      console.log("The schema is up to date.");
    });
}

async function migrateDatabase(): Promise<Outstanding> {
  const url = process.env.DATABASE_URL;
  if (!url) {
    throw new CliError(
      "DATABASE_URL is not set. Set it to the database of the service. A service migrates its embedded Postgres.",
    );
  }
  const signal = AbortSignal.timeout(WAIT_MS);
  try {
    const pool = openPool(url, { max: 1 });
    try {
      const run = () => checkServer(pool).then(() => migrate(pool));
      return await whenAvailable(run, { url, log: createLog("warn"), signal });
    } finally {
      await pool.end();
    }
  } catch (error) {
    if (error === signal.reason) {
      throw new CliError(`The database in DATABASE_URL was not available within ${WAIT_MS / 1_000} seconds.`);
    }
    throw new CliError(error instanceof Error ? error.message : String(error));
  }
}
