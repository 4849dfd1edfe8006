import { whenAvailable } from "../store/await-database.ts";
import { checkServer } from "../store/check-server.ts";
import { migrate, type Outstanding } from "../store/migrate.ts";
import { isLocked, openPool } from "../store/pool.ts";
import { createLog } from "../telemetry/log.ts";
import { CliError } from "./target.ts";

/** Longest wait for the database, in milliseconds. */
const WAIT_MS = 60_000;

/** Longest wait for another process that migrates it, in milliseconds. */
const LOCK_MS = 300_000;

/**
 * Brings the schema of a database up to date. Only the wait before that is limited.
 * @param waitMs longest wait for the database; tests set it
 * @throws CliError that says what is wrong
 */
export async function migrateDatabase(url: string, waitMs: number = WAIT_MS): Promise<Outstanding> {
  const signal = AbortSignal.timeout(waitMs);
  try {
    const pool = openPool(url, { max: 1 });
    try {
      await whenAvailable(() => checkServer(pool), { url, log: createLog("warn"), signal });
      return await migrate(pool, undefined, LOCK_MS);
    } finally {
      await pool.end();
    }
  } catch (error) {
    if (error === signal.reason) {
      throw new CliError(`The database in DATABASE_URL was not available within ${waitMs / 1_000} seconds.`);
    }
    if (isLocked(error)) {
      throw new CliError("Another process is migrating the database. Run the command again when it has ended.");
    }
    throw new CliError(error instanceof Error ? error.message : String(error));
  }
}
