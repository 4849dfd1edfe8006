import { whenAvailable } from "../store/await-database.ts";
import { checkServer } from "../store/check-server.ts";
import { migrate, type Outstanding } from "../store/migrate.ts";
import { openPool } from "../store/pool.ts";
import { createLog } from "../telemetry/log.ts";
import { CliError } from "./target.ts";

/** Longest wait for the database, and for another process that migrates it, in milliseconds. */
const WAIT_MS = 60_000;

/** Brings the schema of a database up to date. @throws CliError that says what is wrong */
export async function migrateDatabase(url: string): Promise<Outstanding> {
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
