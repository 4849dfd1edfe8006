import { setTimeout as sleep } from "node:timers/promises";
import { type Waiting, whenAvailable } from "../store/await-database.ts";
import { checkServer } from "../store/check-server.ts";
import { migrate, type Outstanding } from "../store/migrate.ts";
import { isLocked, isUnavailable, openPool, type Pool } from "../store/pool.ts";
import { createLog } from "../telemetry/log.ts";
import { CliError } from "./target.ts";

/** Longest wait for the database, in milliseconds. */
const WAIT_MS = 60_000;

/** Longest wait for another process that migrates it, in milliseconds. */
const LOCK_MS = 300_000;

/** Wait after a migration that was interrupted, in milliseconds. */
const PAUSE_MS = 1_000;

/**
 * Brings the schema of a database up to date.
 * @param waitMs time in which the database must become available, and in which an interrupted migration begins again.
 *   It does not end a migration that has begun. Tests set it
 * @throws CliError that says what is wrong
 */
export async function migrateDatabase(url: string, waitMs: number = WAIT_MS): Promise<Outstanding> {
  const signal = AbortSignal.timeout(waitMs);
  try {
    const pool = openPool(url, { max: 1 });
    try {
      return await migrateWhenAvailable(pool, { url, log: createLog("warn"), signal });
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

/** Begins again after a deadlock with requests, or a failover, until the signal aborts. */
async function migrateWhenAvailable(pool: Pool, waiting: Waiting): Promise<Outstanding> {
  const { log, signal } = waiting;
  for (;;) {
    await whenAvailable(() => checkServer(pool), waiting);
    try {
      return await migrate(pool, undefined, LOCK_MS);
    } catch (error) {
      if (signal.aborted || isLocked(error) || !isUnavailable(error)) throw error;
      log.warn({ reason: (error as Error).message }, "the migration was interrupted; it begins again");
    }
    await sleep(PAUSE_MS);
  }
}
