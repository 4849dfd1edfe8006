import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, overloaded, type Pool } from "../store/pool.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createBacklog } from "./backlog.ts";
import { createBatcher } from "./batch.ts";
import type { Journal } from "./journal.ts";
import type { SettlementRow } from "./post-journal.ts";

/** Largest number of requests that are settled in one statement. 256 take about 10 ms. */
const MAX_ITEMS = 256;

/** Time between two trial requests while no settlement succeeds, in milliseconds. */
const TRIAL_MS = 1_000;

export interface Settlements {
  /**
   * Ends a request of a workspace. Resolves when the settlement is on disk: in the database, or in the journal while
   * the database is unavailable.
   * @returns what is charged, in micro-credits
   * @throws Failure overloaded when neither takes it, or Error when the database is available and refuses the row; then
   *   nothing is charged.
   */
  settle(workspaceId: string, row: SettlementRow): Promise<bigint>;
  /**
   * Call it before a request is admitted. While neither the database nor the journal takes settlements, it lets one
   * request a second through, whose settlement shows whether that has changed.
   * @throws Failure overloaded
   */
  checkWritable(): void;
  /** Whether the settlement of a request waits in the journal. */
  waits(requestId: string): boolean;
  /** Stops the retries. Settlements that still wait stay in the journal. */
  close(): Promise<void>;
}

/**
 * Creates settlements over the function `settle_leases()`, with a journal for the time in which the database is
 * unavailable. Settling a request again changes nothing, so a statement whose result did not arrive is repeated.
 * @param clock the time in milliseconds since 1970, for tests; undefined: the database's clock
 */
export function createSettlements(
  pool: Pool,
  journal: Journal<SettlementRow>,
  log: Log,
  telemetry?: Telemetry,
  clock?: () => number,
): Settlements {
  // No limit on waiting requests: each was admitted, and admission limits their number.
  const limits = { maxItems: MAX_ITEMS, maxWaiting: Number.POSITIVE_INFINITY };
  const store = (workspaceId: string, rows: readonly SettlementRow[]) => storeRows(pool, workspaceId, rows, log, clock);
  const settle = createBatcher(settleBatch, limits, (waitedMs) => telemetry?.batch("settlement", waitedMs));
  const backlog = createBacklog(journal, MAX_ITEMS, store, log);
  telemetry?.watchJournal(() => backlog.size(), journal.setAside);
  /** When a request may be admitted again, on the clock of `performance.now()`; undefined: settlements succeed. */
  let nextTrial: number | undefined;
  return {
    async settle(workspaceId, row) {
      const charge = await settle(workspaceId, row);
      if (charge instanceof Error) throw charge;
      return charge;
    },
    checkWritable() {
      if (nextTrial === undefined) return;
      const now = performance.now();
      if (now < nextTrial) {
        telemetry?.requestShed("journal");
        throw overloaded(new Error("neither the database nor the journal takes settlements"));
      }
      nextTrial = now + TRIAL_MS;
    },
    waits: (requestId) => backlog.has(requestId),
    close: () => backlog.close(),
  };

  async function settleBatch(workspaceId: string, rows: SettlementRow[]): Promise<(bigint | Error)[]> {
    const results = await store(workspaceId, rows).catch((error) => writeToJournal(workspaceId, rows, error));
    nextTrial = undefined;
    return results;
  }

  /** @param error why the database did not take the rows */
  async function writeToJournal(workspaceId: string, rows: SettlementRow[], error: unknown): Promise<bigint[]> {
    if (!isUnavailable(error)) throw error;
    if (backlog.size() === 0)
      log.warn({ cause: errorFacts(error) }, "the database is unavailable; settlements wait in the journal");
    try {
      await backlog.add(workspaceId, rows);
    } catch (cause) {
      telemetry?.journalFailed(rows.length);
      if (nextTrial === undefined)
        log.error({ folder: journal.folder, cause: errorFacts(cause) }, "could not write to the journal in DATA_DIR");
      nextTrial = performance.now() + TRIAL_MS;
      throw overloaded(cause);
    }
    return rows.map((row) => BigInt(row.credits_micro));
  }
}

/**
 * Settles rows together, or one by one when the database refuses that.
 * @returns for each row the charge, or why the database refuses the row
 * @throws Error when the database is unavailable
 */
async function storeRows(
  pool: Pool,
  workspaceId: string,
  rows: readonly SettlementRow[],
  log: Log,
  clock: (() => number) | undefined,
): Promise<(bigint | Error)[]> {
  try {
    return await settleRows(pool, workspaceId, rows, clock);
  } catch (error) {
    if (isUnavailable(error)) throw error;
    const [row] = rows;
    if (row && rows.length === 1) {
      log.error({ request_id: row.request_id, cause: errorFacts(error) }, "could not settle a request");
      return [error instanceof Error ? error : new Error(String(error))];
    }
    const results: (bigint | Error)[] = [];
    for (const row of rows) results.push(...(await storeRows(pool, workspaceId, [row], log, clock)));
    return results;
  }
}

/** @returns the charges in micro-credits, in the order of the rows */
async function settleRows(
  pool: Pool,
  workspaceId: string,
  rows: readonly SettlementRow[],
  clock: (() => number) | undefined,
): Promise<bigint[]> {
  const [result] = await pool.query<{ charges: Record<string, string> }>(
    "select settle_leases($1, $2, $3) as charges",
    [workspaceId, JSON.stringify(rows), clock ? new Date(clock()) : null],
  );
  return rows.map((row) => BigInt(result?.charges[row.request_id] ?? row.credits_micro));
}
