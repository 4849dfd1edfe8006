import type { Log } from "../log.ts";
import { startEmbedded } from "./embedded/embedded.ts";
import { migrate } from "./migrate.ts";
import { openPool, type Pool } from "./pool.ts";

/** Timeouts of statements that a request waits for. A settlement that exceeds them waits in the journal. */
const REQUEST_TIMEOUTS = { timeoutMs: 3_000, connectMs: 1_000 };

/** An open database with an up-to-date schema. Disposing it closes the connections and stops an embedded server. */
export interface Store extends AsyncDisposable {
  /** Connections for the request path only, with short timeouts. */
  readonly requests: Pool;
  /** Separate connections for administration, reports and maintenance, so that these never delay a request. */
  readonly maintenance: Pool;
}

export interface StoreOptions {
  /** Connection string of an existing Postgres; undefined starts the embedded one under `dataDir`. */
  databaseUrl: string | undefined;
  dataDir: string;
}

/**
 * Opens the database and applies outstanding migrations.
 * @param signal aborts the start between two steps; everything that was started is stopped again
 */
export async function openStore(options: StoreOptions, log: Log, signal: AbortSignal): Promise<Store> {
  await using stack = new AsyncDisposableStack();
  let url = options.databaseUrl;
  if (!url) {
    const embedded = await startEmbedded(options.dataDir, (message) => log.info(message));
    stack.defer(() => embedded.stop());
    url = embedded.url;
  }
  signal.throwIfAborted();
  const requests = stack.adopt(openPool(url, REQUEST_TIMEOUTS), (pool) => pool.end());
  const maintenance = stack.adopt(openPool(url), (pool) => pool.end());
  await migrate(maintenance);
  signal.throwIfAborted();
  const opened = stack.move();
  return { requests, maintenance, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
