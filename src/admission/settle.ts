import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import { createBatcher } from "./batch.ts";
import type { Entry, Journal } from "./journal.ts";

/** How often the database is asked again while settlements wait for it, in milliseconds. */
const RETRY_MS = 500;

/** A row of `generations` without its workspace; `credits_micro` is the price. */
export interface SettlementRow {
  id: string;
  request_id: string;
  created_at: Date | string;
  credits_micro: string;
  /** Base64; kept for the idempotency key of the request. */
  response?: string;
  [column: string]: unknown;
}

export interface Settlements {
  /**
   * Ends a request of a workspace. Resolves when that is on disk: in the database, or, while that is away, in the journal.
   * @returns what was charged, in micro-credits
   */
  settle(workspaceId: string, row: SettlementRow): Promise<bigint>;
  /** Ends the retries; what still waits stays in the journal. */
  close(): Promise<void>;
}

export function createSettlements(pool: Pool, journal: Journal, log: Log): Settlements {
  const settle = createBatcher(settleBatch, { maxItems: 256, maxWaiting: 20_000 });
  let timer: NodeJS.Timeout | undefined;
  let draining: Promise<void> | undefined;
  let closed = false;
  if (journal.pending().length > 0) drainSoon();
  return {
    settle,
    async close() {
      closed = true;
      clearTimeout(timer);
      await draining;
      await journal.close();
    },
  };

  async function settleBatch(workspaceId: string, rows: SettlementRow[]): Promise<bigint[]> {
    // What waits came first; order does not matter for the sums, but a database that is away is asked by one place only.
    if (journal.pending().length === 0) {
      try {
        return await store(workspaceId, rows);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        log.warn({ cause: errorFacts(error) }, "the database is away; settlements wait in the journal");
      }
    }
    await journal.append(rows.map((row) => ({ workspaceId, row })));
    drainSoon();
    return rows.map((row) => BigInt(row.credits_micro));
  }

  async function store(workspaceId: string, rows: readonly object[]): Promise<bigint[]> {
    const [result] = await pool.query<{ charges: Record<string, number> }>("select settle_leases($1, $2) as charges", [
      workspaceId,
      JSON.stringify(rows),
    ]);
    return rows.map((row) => BigInt(result?.charges[(row as SettlementRow).request_id] ?? 0));
  }

  function drainSoon(): void {
    if (closed || timer) return;
    timer = setTimeout(() => {
      draining = drain().finally(() => {
        timer = undefined;
        if (journal.pending().length > 0) drainSoon();
      });
    }, RETRY_MS);
  }

  /** Brings the journal to the database, workspace by workspace, in its order. */
  async function drain(): Promise<void> {
    try {
      while (!closed && journal.pending().length > 0) {
        const batch = run(journal.pending());
        await store(
          batch[0]?.workspaceId ?? "",
          batch.map(({ row }) => row),
        );
        await journal.drop(batch.length);
      }
    } catch (error) {
      if (!isUnavailable(error))
        log.error({ cause: errorFacts(error) }, "a settlement in the journal cannot be stored");
    }
  }
}

/** The first entries that belong to one workspace. */
function run(entries: readonly Entry[]): Entry[] {
  const other = entries.findIndex(({ workspaceId }) => workspaceId !== entries[0]?.workspaceId);
  return entries.slice(0, Math.min(other < 0 ? entries.length : other, 256));
}
