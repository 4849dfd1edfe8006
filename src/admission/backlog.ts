import { errorFacts, type Log } from "../log.ts";
import { isUnavailable } from "../store/pool.ts";
import type { Journal } from "./journal.ts";
import type { Entry } from "./journal-file.ts";

/** How often the database is tried again while settlements wait, in milliseconds. */
const RETRY_MS = 500;

/** Settlements that wait in the journal until the database is available again. */
export interface Backlog<Row> {
  /** Resolves when the rows are on disk. */
  add(workspaceId: string, rows: readonly Row[]): Promise<void>;
  has(requestId: string): boolean;
  /** Number of settlements that wait. */
  size(): number;
  /** Stops the retries. Settlements that still wait stay in the journal. */
  close(): Promise<void>;
}

/**
 * Creates a backlog, which also contains what earlier processes left in the journal.
 * @param maxItems largest number of rows for one call of `store`
 * @param store writes rows of one workspace to the database, and returns an Error for each row that it refuses
 */
export function createBacklog<Row extends { request_id: string }>(
  journal: Journal<Row>,
  maxItems: number,
  store: (workspaceId: string, rows: readonly Row[]) => Promise<readonly unknown[]>,
  log: Log,
): Backlog<Row> {
  const waiting = new Set(journal.pending().map(({ row }) => row.request_id));
  let timer: NodeJS.Timeout | undefined;
  let draining: Promise<void> | undefined;
  let isClosed = false;
  if (waiting.size > 0) drainLater(0);
  return {
    async add(workspaceId, rows) {
      await journal.append(rows.map((row) => ({ workspaceId, row })));
      for (const { request_id } of rows) waiting.add(request_id);
      drainLater(RETRY_MS);
    },
    has: (requestId) => waiting.has(requestId),
    size: () => waiting.size,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await draining;
      await journal.close();
    },
  };

  function drainLater(ms: number): void {
    if (isClosed || timer) return;
    timer = setTimeout(() => {
      draining = drain()
        .catch((error) => {
          if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "could not settle from the journal");
        })
        .finally(() => {
          timer = undefined;
          if (journal.pending().length > 0) drainLater(RETRY_MS);
        });
    }, ms);
  }

  /** Moves the journal to the database. The order of settlements does not matter, because they only add up. */
  async function drain(): Promise<void> {
    let count = 0;
    for (const [workspaceId, entries] of Map.groupBy(journal.pending(), (entry) => entry.workspaceId)) {
      for (let i = 0; i < entries.length && !isClosed; i += maxItems) {
        count += await storeEntries(workspaceId, entries.slice(i, i + maxItems));
      }
    }
    log.warn({ settlements: count }, "settled requests from the journal");
  }

  /** @returns number of requests */
  async function storeEntries(workspaceId: string, entries: readonly Entry<Row>[]): Promise<number> {
    // Two files of the journal can contain the same request.
    const rows = [...new Map(entries.map(({ row }) => [row.request_id, row])).values()];
    const results = await store(workspaceId, rows);
    for (const [i, row] of rows.entries()) {
      if (results[i] instanceof Error) await journal.refuse({ workspaceId, row });
    }
    await journal.drop(entries);
    for (const { request_id } of rows) waiting.delete(request_id);
    return rows.length;
  }
}
