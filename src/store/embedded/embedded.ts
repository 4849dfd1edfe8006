import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Cluster, launch, openCluster, START_MS, shutDown } from "./cluster.ts";
import { serverState } from "./pid-file.ts";

/**
 * Advisory lock that every service holds, shared, while it uses the server. A service that gets it exclusively was the
 * last.
 */
const USE_LOCK = 4_207_849_483n;

/** Pause between two attempts to start a lost server again, in milliseconds. */
const RETRY_MS = 1_000;

interface Connection {
  port: number;
  /** The connection that holds the lock, and is used for nothing else. */
  client: pg.Client;
}

/**
 * Starts Postgres 18 with its data in `<dataDir>/postgres`, or joins the server that another service started there. The
 * server is a separate process: signals to the service do not reach it, and it survives a service that is killed.
 * `stop` releases it, and the last service to release it stops it. A server that crashes is started again at the same
 * address. The first start takes 0.8 s.
 *
 * All services that share a folder must run on one machine or in one container, because they find the server by its
 * process.
 * @param log receives a line about each event of interest to an operator
 * @throws Error that says what is wrong with the folder or the machine, and what to do
 */
export async function startEmbedded(
  dataDir: string,
  log: (message: string, level: "info" | "warn") => void,
): Promise<{ url: string; stop(): Promise<void> }> {
  const cluster = await openCluster(dataDir, (note) => log(note, "info"));
  const stopping = new AbortController();
  let connection: Connection | undefined = await connect(cluster, stopping.signal);
  let recovery: Promise<void> | undefined;
  const { port } = connection;
  watch(connection.client);

  function watch(client: pg.Client): void {
    client.once("end", () => {
      connection = undefined;
      if (!stopping.signal.aborted) recovery = recover();
    });
  }

  async function recover(): Promise<void> {
    log("The embedded Postgres was lost. Starting it again.", "warn");
    for (let logged = ""; !stopping.signal.aborted; ) {
      try {
        connection = await connect(cluster, stopping.signal, port);
        watch(connection.client);
        return log("The embedded Postgres is back.", "info");
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (!stopping.signal.aborted && message !== logged) log(message, "warn");
        logged = message;
        await sleep(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await recovery;
    if (!connection) return;
    const { client } = connection;
    try {
      if (await isLast(client)) await shutDown(cluster);
    } finally {
      await client.end();
    }
  }

  let stopped: Promise<void> | undefined;
  return {
    url: address(cluster, port),
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/**
 * Joins the running server, or starts one and joins it.
 * @param signal once it has aborted, no server is started. One that is starting is joined all the same, because the
 *   last service has to stop it
 * @param port required port; undefined: any
 */
async function connect(cluster: Cluster, signal: AbortSignal, port?: number): Promise<Connection> {
  const deadline = performance.now() + START_MS;
  for (let first = true; ; first = false) {
    const state = await serverState(cluster);
    if (state.status === "absent") {
      signal.throwIfAborted();
      // Tries the port of the crashed server first, because other services wait for it there.
      const wanted = port ?? (first ? state.port : undefined);
      await launch(cluster, wanted ?? (await freePort()));
    } else if (state.status === "ready" && state.port !== undefined) {
      if (port !== undefined && state.port !== port)
        throw new Error(`Postgres moved to port ${state.port}. Restart this service.`);
      const client = await join(cluster, state.port);
      if (client) return { port: state.port, client };
    }
    if (performance.now() > deadline)
      throw new Error(`Postgres was not ready in ${START_MS / 1_000} s. See ${cluster.home}/server.log.`);
    await sleep(20);
  }
}

/** Opens a connection that holds the lock. @returns undefined when the server is about to stop */
async function join(cluster: Cluster, port: number): Promise<pg.Client | undefined> {
  const client = new pg.Client({
    connectionString: address(cluster, port),
    application_name: "chorus (in use)",
    connectionTimeoutMillis: 5_000,
    query_timeout: 5_000,
  });
  client.on("error", () => undefined); // "end" follows
  try {
    await client.connect();
    const { rows } = await client.query("select pg_try_advisory_lock_shared($1) as held", [USE_LOCK]);
    if (rows[0]?.held) return client;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === "28P01") {
      throw new Error(`The database does not accept the password in ${cluster.home}/password. Restore the file.`, {
        cause: error,
      });
    }
  }
  await client.end();
  return undefined;
}

/** Releases the lock. @returns whether no other service holds it; then no other service can join any more */
async function isLast(client: pg.Client): Promise<boolean> {
  try {
    await client.query("select pg_advisory_unlock_shared($1)", [USE_LOCK]);
    const { rows } = await client.query("select pg_try_advisory_lock($1) as last", [USE_LOCK]);
    return rows[0]?.last === true;
  } catch {
    return false; // the server has ended
  }
}

function address(cluster: Cluster, port: number): string {
  return `postgres://${cluster.role}:${cluster.password}@127.0.0.1:${port}/postgres`;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const bound = server.address();
      server.close(() =>
        typeof bound === "object" && bound ? resolve(bound.port) : reject(new Error("no free port")),
      );
    });
  });
}
