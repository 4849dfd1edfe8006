import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import type { Telemetry } from "../telemetry.ts";
import { createBatcher } from "./batch.ts";
import type { Journal } from "./journal.ts";

/** How often the database is asked again while settlements wait for it, in milliseconds. */
const RETRY_MS = 500;

/** Most requests that are settled in one statement: 256 take about 7 ms. */
const MAX_ITEMS = 256;

/** A row of `generations` without its workspace; `credits_micro` is the price. */
export interface SettlementRow {
  id: string;
  request_id: string;
  created_at: Date | string;
  credits_micro: string;
  /** Of a request with an idempotency key: the hashes under which it was admitted, and the answer to keep, in base64. */
  key?: string;
  body?: string;
  response?: string;
  [column: string]: unknown;
}

export interface Settlements {
  /**
   * Ends a request of a workspace. Resolves when that is on disk: in the database, or, while that is away, in the journal.
   * @returns what was charged, in micro-credits
   * @throws Error when the database is there and finds fault with the row; then nothing is charged.
   */
  settle(workspaceId: string, row: SettlementRow): Promise<bigint>;
  /** Whether the end of a request waits in the journal. */
  waits(requestId: string): boolean;
  /** Ends the retries; what still waits stays in the journal. */
  close(): Promise<void>;
}

/**
 * Settles over the function `settle_leases`, and over the journal while the database is away. Settling twice changes nothing, so whatever
 * is in doubt, such as a statement without an answer, is simply settled again.
 * @param clock the time in milliseconds since 1970, for tests; undefined: the database's own
 */
export function createSettlements(
  pool: Pool,
  journal: Journal<SettlementRow>,
  log: Log,
  telemetry?: Telemetry,
  clock?: () => number,
): Settlements {
  // What waits here was admitted, and is bounded by that.
  const limits = { maxItems: MAX_ITEMS, maxWaiting: Number.POSITIVE_INFINITY };
  const settle = createBatcher(settleBatch, limits, (waitedMs) => telemetry?.batch("settlement", waitedMs));
  telemetry?.watchJournal(() => waiting.size);
  const waiting = new Set(journal.pending().map(({ row }) => row.request_id));
  let timer: NodeJS.Timeout | undefined;
  let draining: Promise<void> | undefined;
  let closed = false;
  if (waiting.size > 0) drainLater(0);
  return {
    async settle(workspaceId, row) {
      const charge = await settle(workspaceId, row);
      if (charge instanceof Error) throw charge;
      return charge;
    },
    waits: (requestId) => waiting.has(requestId),
    async close() {
      closed = true;
      clearTimeout(timer);
      await draining;
      await journal.close();
    },
  };

  async function settleBatch(workspaceId: string, rows: SettlementRow[]): Promise<(bigint | Error)[]> {
    try {
      return await store(workspaceId, rows);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      if (waiting.size === 0)
        log.warn({ cause: errorFacts(error) }, "the database is away; settlements wait in the journal");
      await journal.append(rows.map((row) => ({ workspaceId, row })));
      for (const { request_id } of rows) waiting.add(request_id);
      drainLater(RETRY_MS);
      return rows.map((row) => BigInt(row.credits_micro));
    }
  }

  /**
   * Settles rows together or, when the database finds fault with that, each by itself.
   * @throws Error when the database is away
   */
  async function store(workspaceId: string, rows: readonly SettlementRow[]): Promise<(bigint | Error)[]> {
    try {
      const [result] = await pool.query<{ charges: Record<string, string> }>(
        "select settle_leases($1, $2, $3) as charges",
        [workspaceId, JSON.stringify(rows), clock ? new Date(clock()) : null],
      );
      return rows.map((row) => BigInt(result?.charges[row.request_id] ?? row.credits_micro));
    } catch (error) {
      if (isUnavailable(error)) throw error;
      const [row, ...others] = rows;
      if (row && others.length === 0) {
        log.error({ request_id: row.request_id, cause: errorFacts(error) }, "a request could not be settled");
        return [error instanceof Error ? error : new Error(String(error))];
      }
      const results: (bigint | Error)[] = [];
      for (const each of rows) results.push(...(await store(workspaceId, [each])));
      return results;
    }
  }

  function drainLater(ms: number): void {
    if (closed || timer) return;
    timer = setTimeout(() => {
      draining = drain()
        .catch((error) => {
          if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "the journal cannot be emptied");
        })
        .finally(() => {
          timer = undefined;
          if (journal.pending().length > 0) drainLater(RETRY_MS);
        });
    }, ms);
  }

  /** Brings the journal to the database. Order does not matter for the sums. */
  async function drain(): Promise<void> {
    let count = 0;
    for (const [workspaceId, entries] of Map.groupBy(journal.pending(), (entry) => entry.workspaceId)) {
      for (let i = 0; i < entries.length && !closed; i += MAX_ITEMS) {
        const batch = entries.slice(i, i + MAX_ITEMS);
        // What two files held is there twice.
        const rows = [...new Map(batch.map(({ row }) => [row.request_id, row])).values()];
        for (const [k, result] of (await store(workspaceId, rows)).entries()) {
          const row = rows[k];
          if (result instanceof Error && row) await journal.refuse({ workspaceId, row });
        }
        await journal.drop(batch);
        for (const { request_id } of rows) waiting.delete(request_id);
        count += rows.length;
      }
    }
    log.warn({ settlements: count }, "settlements that waited in the journal have arrived");
  }
}
