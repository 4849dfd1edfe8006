import type { Log } from "../telemetry/log.ts";
import { whenAvailable } from "./await-database.ts";
import { checkServer } from "./check-server.ts";
import { startEmbedded } from "./embedded/embedded.ts";
import { createHysteresis } from "./hysteresis.ts";
import { checkSchema, migrate } from "./migrate.ts";
import { createNotifications, type Notifications } from "./notifications.ts";
import { addressOf, openPool, overloaded, type Pool } from "./pool.ts";

/** Timeouts of statements that a request waits for. A settlement that exceeds them waits in the journal. */
const REQUEST_TIMEOUTS = { timeoutMs: 3_000, connectMs: 1_000 };

/**
 * How long the database must be unavailable until the store is not reachable, and available again until it is, in
 * milliseconds. A failover of a few seconds must not take all replicas out of service at the same time.
 */
const REACHABLE_MS = { toFalse: 10_000, toTrue: 2_000 };

/** Connections to the database. */
export interface Pools {
  /** For the request path only, with short timeouts. */
  readonly requests: Pool;
  /** For administration, reports and maintenance, so that these never delay a request. */
  readonly maintenance: Pool;
}

export type Store = ReturnType<typeof createStore>;

/** Runs a function again for as long as the database is unavailable. */
export type Repeat = <T>(run: () => Promise<T>) => Promise<T>;

export interface StoreOptions {
  /** Connection string of an existing Postgres; undefined starts the embedded one under `dataDir`. */
  databaseUrl: string | undefined;
  /** Direct address of the same Postgres, where `databaseUrl` names a pooler. */
  databaseListenUrl: string | undefined;
  dataDir: string;
  /** Whether connections prepare the statements of requests: not where a pooler may be between, which may forbid it. */
  prepares: boolean;
  /** Whether to bring the schema up to date; if not, `open` waits until another process has done it. */
  migrates: boolean;
  databaseConnections: number;
}

/**
 * Creates the store without touching the database. Its pools refuse every statement with `overloaded` until `open` has
 * resolved. Disposing it closes the connections and stops an embedded server.
 * @param signal aborts `open`
 */
export function createStore(options: StoreOptions, log: Log, signal: AbortSignal) {
  const { databaseUrl, databaseListenUrl, dataDir, prepares, migrates, databaseConnections: max } = options;
  const stack = new AsyncDisposableStack();
  const requests = createGate();
  const maintenance = createGate();
  const notifications = createNotifications(log);
  const reachable = createHysteresis(REACHABLE_MS);
  let isOpen = false;

  async function urlOfDatabase(): Promise<string> {
    if (databaseUrl) return databaseUrl;
    const embedded = await startEmbedded(dataDir, (message, level) => log[level](message));
    stack.defer(() => embedded.stop());
    return embedded.url;
  }

  return {
    requests: requests.pool,
    maintenance: maintenance.pool,
    /** Messages between the processes that use the database. They connect in the background when it is available. */
    notifications: notifications as Notifications,
    /** Whether the pools accept statements. */
    get isOpen(): boolean {
      return isOpen;
    },
    /**
     * False when the database has been unavailable for ten seconds, until it has been available for two. Asking costs
     * nothing: the statements of the heartbeat show the state of the database.
     */
    get isReachable(): boolean {
      return reachable.value;
    },
    /**
     * Waits for the database for as long as it is unavailable, brings the schema up to date and runs `prepare`.
     * @param prepare what must be in the database before the first request; gets pools that accept statements already
     * @throws Error naming the variable of an address when waiting cannot help; the reason of the signal
     */
    async open<T>(prepare: (pools: Pools, repeat: Repeat) => Promise<T>): Promise<T> {
      if (databaseListenUrl) addressOf(databaseListenUrl, "DATABASE_LISTEN_URL");
      const url = await urlOfDatabase();
      signal.throwIfAborted();
      const ofRequests = { ...REQUEST_TIMEOUTS, max, prepares, onAvailability: reachable.set };
      const pools = {
        requests: stack.adopt(openPool(url, ofRequests), (pool) => pool.end()),
        maintenance: stack.adopt(openPool(url, { max }), (pool) => pool.end()),
      };
      const repeat: Repeat = (run) => whenAvailable(run, { url, log, signal });
      await repeat(() => checkServer(pools.maintenance));
      await repeat(() =>
        migrates ? migrate(pools.maintenance).then(() => undefined) : checkSchema(pools.maintenance),
      );
      notifications.start(databaseListenUrl ?? url, pools.requests);
      stack.defer(() => notifications.stop());
      const result = await prepare(pools, repeat);
      requests.open(pools.requests);
      maintenance.open(pools.maintenance);
      isOpen = true;
      return result;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Creates a pool that refuses every statement with `overloaded` until it is opened. */
function createGate() {
  let inner: Pool | undefined;
  const opened = (): Pool => {
    if (!inner) throw overloaded(new Error("the service is still starting"));
    return inner;
  };
  return {
    pool: {
      query: async (text, values) => opened().query(text, values),
      tx: async (run, options) => opened().tx(run, options),
      end: async () => inner?.end(),
    } satisfies Pool as Pool,
    /** Sends all further statements to `pool`. */
    open(pool: Pool): void {
      inner = pool;
    },
  };
}
