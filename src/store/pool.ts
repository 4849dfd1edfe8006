import pg from "pg";
import { Failure } from "../contract/failure.ts";
import { WAITING } from "../overload/bounds.ts";
import { createAvailability } from "./availability.ts";
import { againIfBlocked, withTimeout } from "./loop-time.ts";
import { tlsOf } from "./tls.ts";

/** Runs one statement and returns its rows. Columns of type int8 are bigint, timestamptz Date, numeric string. */
export type Query = <Row = Record<string, unknown>>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

export interface Pool {
  readonly query: Query;
  /**
   * Runs a function in one transaction: commits when it resolves, rolls back when it throws.
   * @param options.timeoutMs timeout of each of its statements, in milliseconds
   */
  tx<T>(run: (query: Query) => Promise<T>, options?: { timeoutMs?: number }): Promise<T>;
  /** Waits for running statements, then closes every connection. */
  end(): Promise<void>;
}

export interface PoolOptions {
  /** Largest number of open connections. Default 10, which is enough because look-ups and settlements are batched. */
  max?: number;
  /** Time after which an unused connection closes, except the last two, in milliseconds. Default 10,000. */
  idleMs?: number;
  /** Timeout of one statement, in milliseconds. Default 10,000. */
  timeoutMs?: number;
  /** Timeout of a new connection, and of the wait for a free one, in milliseconds. Default 3,000. */
  connectMs?: number;
  /** Whether a connection prepares statements of `frequent` once. Not every pooler allows it. Default false. */
  prepares?: boolean;
  /** Called when the server has become unavailable, or available again. */
  onAvailability?: (isAvailable: boolean) => void;
}

/** Names of statements that are sent often, by their texts. */
const names = new Map<string, string>();

/**
 * Notes texts of statements that are sent often, so that a pool with `prepares` sends each once for a connection.
 * Parsing and planning them for each request took 40 to 60 of 640 µs of Postgres, at 200 requests a second.
 */
export function frequent(...texts: string[]): void {
  for (const text of texts) if (!names.has(text)) names.set(text, `chorus_${names.size}`);
}

const INT8 = 20;
/**
 * Unused connections that stay open. A new one has no plans: the first request over it took 76 ms, and takes 29 ms over
 * one that is open, with a Postgres on the same machine and without TLS.
 */
const KEPT = 2;

/**
 * Opens a pool of connections to the Postgres server at `url`. The first statement opens the first connection. While
 * the server is known to be unavailable, every statement fails at once. The URL's sslmode has the meaning that libpq
 * gives it (see `tls.ts`). A connection that is lost while idle is replaced without an error. Timeouts of statements
 * are enforced by the client, because a pooler such as PgBouncer refuses connections that set statement_timeout. Time
 * in which the event loop is blocked does not count.
 * @throws Error naming the parameter of the URL that cannot be used
 */
export function openPool(url: string, options: PoolOptions = {}): Pool {
  const { max = 10, idleMs = 10_000, timeoutMs = 10_000, connectMs = 3_000, onAvailability, prepares } = options;
  const address = addressOf(url);
  const pool = createConnections({ ...address, max, idleTimeoutMillis: idleMs, connectionTimeoutMillis: connectMs });
  const timeouts = { connectionTimeoutMillis: connectMs, query_timeout: connectMs };
  const { opened, hasLost } = watchOpening(pool);
  const availability = createAvailability(
    () => opened(againIfBlocked(connectMs, () => probe({ ...address, ...timeouts }, hasLost))),
    onAvailability,
  );

  async function withClient<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    try {
      return await borrowClient(use);
    } catch (error) {
      if (isUnavailable(error)) availability.reportFailure();
      throw error;
    }
  }

  async function borrowClient<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    availability.check();
    if (pool.waitingCount >= WAITING.statements)
      throw overloaded(new Error("too many statements wait for a database connection"));
    const client = await opened(againIfBlocked(connectMs, () => pool.connect()));
    let isBroken = true;
    try {
      const result = await use(client);
      isBroken = false;
      availability.reportAnswer();
      return result;
    } catch (error) {
      isBroken = !(error instanceof Failure || isStatementError(error));
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  return {
    query: (text, values) => withClient((client) => send(client, text, values, timeoutMs, prepares)),
    tx: (run, { timeoutMs: txTimeoutMs = timeoutMs } = {}) =>
      withClient(async (client) => {
        await send(client, "begin", undefined, txTimeoutMs);
        try {
          const result = await run((text, values) => send(client, text, values, txTimeoutMs, prepares));
          await send(client, "commit", undefined, txTimeoutMs);
          return result;
        } catch (error) {
          await send(client, "rollback", undefined, timeoutMs);
          throw error;
        }
      }),
    end() {
      availability.close();
      return pool.end();
    },
  };
}

/**
 * A server that has taken connections and refuses new ones, such as for a certificate or a password that was changed,
 * is unavailable until that is mended. Before, the address is wrong.
 * @returns `opened` passes a new connection on, or a failure that is unavailability; `hasLost` says whether there were
 *   connections, and none is open
 */
function watchOpening(pool: pg.Pool) {
  // The pool itself counts those that are being opened, too.
  const open = new Set<pg.PoolClient>();
  let hasConnected = false;
  pool.on("connect", (client) => {
    hasConnected = true;
    open.add(client);
    client.once("end", () => open.delete(client));
  });
  pool.on("release", (error, client) => void (error && open.delete(client)));
  return {
    opened: <T>(connection: Promise<T>): Promise<T> =>
      connection.catch((error: unknown) => {
        throw hasConnected && !isUnavailable(error) ? overloaded(error) : error;
      }),
    hasLost: () => hasConnected && open.size === 0,
  };
}

function createConnections(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    ...config,
    min: KEPT,
    types: { getTypeParser: typeParser as typeof pg.types.getTypeParser },
    application_name: "chorus",
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // The statement that needs a lost connection fails. Without listeners the error event would end the process.
  pool.on("error", ignore);
  pool.on("connect", (client) => client.on("error", ignore));
  return pool;
}

/**
 * Whether an error concerns one statement, so that its connection can be used again. After a failover, a connection to
 * the former primary accepts no write (25006) for as long as it is open.
 */
function isStatementError(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.severity === "ERROR" && error.code !== "25006";
}

/** Messages of PgBouncer, whose errors all have the code 08P01: it refuses the user or the database, or is full. */
export const LOGIN_REFUSED = /authentication failed|no such (user|database)/;
const POOLER_FULL = /no more connections allowed/;

/**
 * @param hasLost whether there were connections, and all are lost. A server that refuses new connections is available
 *   to those that are open; one that never took any is not unavailable, but the address is wrong
 * @throws Error when the server is unavailable. A server that has no room for another connection is available
 */
async function probe(config: pg.ClientConfig, hasLost: () => boolean): Promise<void> {
  const client = new pg.Client(config);
  client.on("error", ignore);
  try {
    await client.connect();
    await client.query("select 1");
  } catch (error) {
    if (isRefusal(error) ? hasLost() : isAway(error)) throw error;
  } finally {
    client.end().catch(ignore);
  }
}

/** Whether the server refuses a connection, such as for its password or its certificate, until that is mended. */
function isRefusal(error: unknown): boolean {
  return !isUnavailable(error) || (error instanceof Error && LOGIN_REFUSED.test(error.message));
}

/** Whether the server does not answer, or answers that it takes no statements now. */
function isAway(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return true;
  return /^(08|57)/.test(error.code ?? "") && !POOLER_FULL.test(error.message);
}

/**
 * Messages of `pg` about a connection that was lost or not free in time, or for which the server had no process while
 * TLS began; these errors have no code.
 */
const CONNECTION_LOST = new RegExp(
  "^(Connection terminated|timeout e(xceeded when|xpired)|Query read timeout|Client (has|was)|Cannot use a pool|" +
    "There was an error establishing an SSL connection)",
);

/**
 * Whether the database could not be reached or had no room, so that the same statement can succeed later. Every other
 * error is a defect. Source of the codes: PostgreSQL documentation, appendix A.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof Failure) return error.kind === "overloaded";
  if (!(error instanceof Error)) return false;
  // 08 connection, 40 deadlock or conflict, 53 resources, 57 operator intervention (shutdown, cancelled), 58 the disk
  // of the server, 25006 a standby after a failover, 55P03 lock timeout.
  if (error instanceof pg.DatabaseError) return /^(08|40|53|57|58|25006$|55P03$)/.test(error.code ?? "");
  if ("syscall" in error || (error instanceof AggregateError && "code" in error)) return true;
  // A connection that ends while TLS begins.
  if ("code" in error && error.code === "ECONNRESET") return true;
  return CONNECTION_LOST.test(error.message);
}

/** Whether a statement has waited too long for a lock. Statements about other rows can succeed. */
export function isLocked(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "55P03";
}

/** The failure that callers get while the database is unavailable, with a wait of one second. */
export function overloaded(cause: unknown): Failure {
  return new Failure("overloaded", { cause });
}

/** Turns the error of an unavailable database into `overloaded`. Every other error passes through. */
export async function orOverloaded<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    throw isUnavailable(error) && !(error instanceof Failure) ? overloaded(error) : error;
  }
}

/** The same pool, which throws Failure `overloaded` while the database is unavailable. */
export function forCallers(pool: Pool): Pool {
  return {
    query: (text, values) => orOverloaded(pool.query(text, values)),
    tx: (run, options) => orOverloaded(pool.tx(run, options)),
    end: () => pool.end(),
  };
}

/**
 * Reads the address of a server.
 * @param variable names it in errors
 * @throws Error naming the variable, and the parameter that cannot be used
 */
export function addressOf(url: string, variable = "DATABASE_URL"): ReturnType<typeof tlsOf> {
  const address = tlsOf(url, variable);
  try {
    new pg.Client(address);
  } catch {
    // Without the cause, which can quote the password.
    throw new Error(
      `${variable} must be an address such as postgres://user:password@host:5432/database. ` +
        "Write the characters # / ? in a password as %23 %2F %3F.",
    );
  }
  return address;
}

async function send<Row>(
  client: pg.PoolClient,
  text: string,
  values: readonly unknown[] | undefined,
  timeoutMs: number,
  prepares = false,
): Promise<Row[]> {
  const name = prepares ? names.get(text) : undefined;
  const query = client.query({ ...(name ? { name } : {}), text, ...(values ? { values: [...values] } : {}) });
  const { rows } = await withTimeout(timeoutMs, query);
  return rows as Row[];
}

function typeParser(oid: number, format?: "text" | "binary"): unknown {
  return oid === INT8 ? BigInt : pg.types.getTypeParser(oid, format ?? "text");
}

function ignore(): void {}
