import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import pg from "pg";
import { Failure } from "../failure.ts";
import { createAvailability } from "./availability.ts";

/** Runs one statement and gives its rows. Columns of type int8 arrive as bigint, timestamptz as Date, numeric as string. */
export type Query = <Row = Record<string, unknown>>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

export interface Pool {
  readonly query: Query;
  /** Runs `work` in one transaction: committed when it resolves, rolled back when it throws. */
  tx<T>(work: (query: Query) => Promise<T>, options?: { timeoutMs?: number }): Promise<T>;
  /** Waits for what runs, then closes every connection. */
  end(): Promise<void>;
}

export interface PoolOptions {
  /** Most connections open at one time. Default 10: enough for batches of look-ups and settlements, and small change for any server. */
  max?: number;
  /** Patience with one statement, in milliseconds. Default 10,000. */
  timeoutMs?: number;
  /** Patience with a new connection, and with a free place in the pool, in milliseconds. Default 3,000. */
  connectMs?: number;
}

/** Statements that may wait for a connection; beyond it they fail at once instead of queueing without end. */
const MAX_WAITING = 1_000;

const INT8 = 20;

/**
 * Opens a pool of connections to the Postgres at `url`; nothing is connected before the first statement. While the server is known to be
 * away, every statement fails at once.
 * The URL's sslmode means what it means to libpq (see `tlsOf`). A connection that is lost while idle is replaced, never thrown.
 * Statements time out on this side alone, because a pooler such as PgBouncer refuses connections that ask for a statement_timeout.
 * @throws Error naming the parameter of the URL that cannot be used.
 */
export function openPool(url: string, options: PoolOptions = {}): Pool {
  const { max = 10, timeoutMs = 10_000, connectMs = 3_000 } = options;
  const address = tlsOf(url);
  checkAddress(address);
  const pool = new pg.Pool({
    ...address,
    max,
    types: { getTypeParser: typeParser as typeof pg.types.getTypeParser },
    connectionTimeoutMillis: connectMs,
    query_timeout: timeoutMs,
    application_name: "chorus",
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // A lost connection is reported by the statement that needed it; without listeners it would end the process.
  pool.on("error", ignore);
  pool.on("connect", (client) => client.on("error", ignore));

  const gate = createAvailability(() =>
    ask({ ...address, connectionTimeoutMillis: connectMs, query_timeout: connectMs }),
  );

  async function use<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    try {
      return await useClient(work);
    } catch (error) {
      if (isUnavailable(error)) gate.suspect();
      throw error;
    }
  }

  async function useClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    gate.pass();
    if (pool.waitingCount >= MAX_WAITING)
      throw overloaded(new Error("too many statements wait for a database connection"));
    const client = await pool.connect();
    let broken = true;
    try {
      const result = await work(client);
      broken = false;
      return result;
    } catch (error) {
      broken = !(error instanceof Failure || (error instanceof pg.DatabaseError && error.severity === "ERROR"));
      throw error;
    } finally {
      client.release(broken);
    }
  }

  return {
    query: (text, values) => use((client) => run(client, text, values)),
    tx: (work, { timeoutMs: patience = timeoutMs } = {}) =>
      use(async (client) => {
        await run(client, "begin", undefined, patience);
        try {
          const result = await work((text, values) => run(client, text, values, patience));
          await run(client, "commit", undefined, patience);
          return result;
        } catch (error) {
          await run(client, "rollback");
          throw error;
        }
      }),
    end() {
      gate.end();
      return pool.end();
    },
  };
}

/** @throws Error unless the server is there; one that has no room for another connection is. */
async function ask(config: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(config);
  client.on("error", ignore);
  try {
    await client.connect();
    await client.query("select 1");
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || /^57/.test(error.code ?? "")) throw error;
  } finally {
    client.end().catch(ignore);
  }
}

/**
 * Whether the database could not be reached or had no room, so that the same statement may pass later. Every other error is a defect.
 * Source of the codes: PostgreSQL documentation, appendix A.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof Failure) return error.kind === "overloaded";
  if (!(error instanceof Error)) return false;
  // 08 connection, 53 resources, 57 operator intervention (shutdown, cancelled), 25006 a standby after a failover, 55P03 lock timeout.
  if (error instanceof pg.DatabaseError) return /^(08|53|57|25006$|55P03$)/.test(error.code ?? "");
  if ("syscall" in error || (error instanceof AggregateError && "code" in error)) return true;
  return /^(Connection terminated|timeout e(xceeded when|xpired)|Query read timeout|Client (has|was)|Cannot use a pool)/.test(
    error.message,
  );
}

/** What a caller sees while the database is away, and how long it should wait, in milliseconds. */
export function overloaded(cause: unknown): Failure {
  return new Failure("overloaded", { retryAfterMs: 1_000, cause });
}

/** Waits for `work` and turns an absent database into `overloaded`; every other error passes through. */
export async function orOverloaded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw isUnavailable(error) && !(error instanceof Failure) ? overloaded(error) : error;
  }
}

/**
 * Takes the TLS parameters out of a Postgres URL and gives them libpq's meaning, which `pg` alone does not: it reads `require` as `verify-full`.
 * none, `disable`, `allow`: no TLS. `prefer`, `require`: TLS, the certificate unchecked unless `sslrootcert` is given, then as `verify-ca`
 * (`prefer` never falls back to a connection without TLS). `verify-ca`: the chain is checked. `verify-full`, or `ssl=true`: the host name too.
 * `sslrootcert` is a file, or `system` (the default of `verify-full`) for the certificate authorities that Node trusts.
 * Source: PostgreSQL documentation, section 32.19.
 * @throws Error naming the parameter that cannot be used.
 */
export function tlsOf(url: string): Pick<pg.PoolConfig, "connectionString" | "ssl" | "sslnegotiation"> {
  const at = url.indexOf("?");
  const parameters = new URLSearchParams(at < 0 ? "" : url.slice(at));
  const take = (name: string): string | undefined => {
    const value = parameters.get(name) ?? undefined;
    parameters.delete(name);
    return value;
  };
  // Left in the URL, any of these would make `pg` form its own idea of TLS and put it over ours.
  const mode = modeOf(take("sslmode"), take("ssl"));
  const ca = take("sslrootcert");
  const cert = take("sslcert");
  const key = take("sslkey");
  const direct = take("sslnegotiation") === "direct";
  take("uselibpqcompat");
  const base = at < 0 ? url : url.slice(0, at);
  const connectionString = parameters.size > 0 ? `${base}?${parameters}` : base;
  if (mode === "plain") return { connectionString, ssl: false };

  const ssl: ConnectionOptions = {};
  if (ca && ca !== "system") ssl.ca = readPem("sslrootcert", ca);
  if (cert) ssl.cert = readPem("sslcert", cert);
  if (key) ssl.key = readPem("sslkey", key);
  if (mode === "verify-ca" && !ssl.ca) {
    throw new Error(
      "DATABASE_URL has sslmode=verify-ca, which needs the file sslrootcert. Add it, or use verify-full.",
    );
  }
  if (mode !== "verify-full" && ca !== "system") {
    if (ca) ssl.checkServerIdentity = () => undefined;
    else ssl.rejectUnauthorized = false;
  }
  return { connectionString, ssl, ...(direct ? { sslnegotiation: "direct" } : {}) };
}

function modeOf(
  sslmode: string | undefined,
  ssl: string | undefined,
): "plain" | "require" | "verify-ca" | "verify-full" {
  switch (sslmode ?? (ssl === "true" || ssl === "1" ? "verify-full" : (ssl ?? "disable"))) {
    case "disable":
    case "allow":
    case "false":
    case "0":
      return "plain";
    case "prefer":
    case "require":
    case "no-verify":
      return "require";
    case "verify-ca":
      return "verify-ca";
    case "verify-full":
      return "verify-full";
    default:
      throw new Error(
        `DATABASE_URL has ${sslmode ? `sslmode=${sslmode}` : `ssl=${ssl}`}. Use sslmode=disable, require, verify-ca or verify-full.`,
      );
  }
}

function readPem(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`DATABASE_URL names ${name}=${path}, which cannot be read. Correct the path.`, { cause: error });
  }
}

function checkAddress(address: pg.ClientConfig): void {
  try {
    new pg.Client(address);
  } catch {
    // The cause is left out because it may quote the password.
    throw new Error(
      "DATABASE_URL is no address such as postgres://user:password@host:5432/database. Characters like # / ? in a password are written as %23 %2F %3F.",
    );
  }
}

async function run<Row>(
  client: pg.PoolClient,
  text: string,
  values?: readonly unknown[],
  timeoutMs?: number,
): Promise<Row[]> {
  const timeout = timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
  const result = await client.query({ text, ...(values ? { values: [...values] } : {}), ...timeout });
  return result.rows as Row[];
}

function typeParser(oid: number, format?: "text" | "binary"): unknown {
  return oid === INT8 ? BigInt : pg.types.getTypeParser(oid, format ?? "text");
}

function ignore(): void {}
