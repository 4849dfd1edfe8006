import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Cluster, launch, openCluster, START_MS, serverState, shutDown } from "./cluster.ts";

/** Advisory lock that every service holds, shared, for as long as it needs the server. The one that then gets it alone was the last. */
const USE_LOCK = 4_207_849_483n;

/** Pause before another attempt to get a lost server back, in milliseconds. */
const RETRY_MS = 1_000;

interface Hold {
  port: number;
  /** The connection that holds the lock; it does nothing else. */
  client: pg.Client;
}

/**
 * Starts Postgres 18 with its data in `<dataDir>/postgres`, or joins the server that another service, or a service that was killed, left
 * running there. The server is a process of its own: no signal to the service reaches it, and it survives a service that is killed.
 * `stop` lets go of it, and the last service to let go stops it. A server that dies meanwhile is started again at the same address.
 * Measured: 0.8 s for the first start, 0.1 s for later ones.
 *
 * All services of a folder must run on one machine (or in one container), because a server elsewhere cannot be seen from here.
 * @param log takes a line about each event that an operator may want to know
 * @throws Error saying what is wrong with the folder or the machine, and what to do.
 */
export async function startEmbedded(
  dataDir: string,
  log: (message: string) => void,
): Promise<{ url: string; stop(): Promise<void> }> {
  const cluster = await openCluster(dataDir, log);
  const stopping = new AbortController();
  let hold: Hold | undefined = await take(cluster, stopping.signal);
  let recovery: Promise<void> | undefined;
  const { port } = hold;
  watch(hold.client);

  function watch(client: pg.Client): void {
    client.once("end", () => {
      hold = undefined;
      if (!stopping.signal.aborted) recovery = recover();
    });
  }

  async function recover(): Promise<void> {
    log("The embedded Postgres was lost. Getting it back.");
    for (let said = ""; !stopping.signal.aborted; ) {
      try {
        hold = await take(cluster, stopping.signal, port);
        watch(hold.client);
        return log("The embedded Postgres is back.");
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (!stopping.signal.aborted && message !== said) log(message);
        said = message;
        await sleep(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await recovery;
    if (!hold) return;
    const { client } = hold;
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

/** Joins the running server, or starts one and joins it. Only `port` will do if it is given. */
async function take(cluster: Cluster, signal: AbortSignal, port?: number): Promise<Hold> {
  const deadline = Date.now() + START_MS;
  for (let first = true; ; first = false) {
    const state = await serverState(cluster);
    if (state.status === "absent") {
      // First where a server that died was: services that outlived it look for it there.
      const wanted = port ?? (first ? state.port : undefined);
      await launch(cluster, wanted ?? (await freePort()), signal);
    } else if (state.status === "ready" && state.port !== undefined) {
      if (port !== undefined && state.port !== port)
        throw new Error(`Postgres moved to port ${state.port}. Restart this service.`);
      const client = await join(cluster, state.port);
      if (client) return { port: state.port, client };
    }
    if (Date.now() > deadline)
      throw new Error(`Postgres was not ready in ${START_MS / 1_000} s. See ${cluster.home}/server.log.`);
    await sleep(20, undefined, { signal });
  }
}

/** A connection that holds the lock; undefined when the server is about to stop. */
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
      throw new Error(`The password in ${cluster.home}/password is not the database's. Put the right one back.`, {
        cause: error,
      });
    }
  }
  await client.end();
  return undefined;
}

/** Lets go of the lock, and tells whether no one else holds it: from then on no one can join. */
async function isLast(client: pg.Client): Promise<boolean> {
  try {
    await client.query("select pg_advisory_unlock_shared($1)", [USE_LOCK]);
    const { rows } = await client.query("select pg_try_advisory_lock($1) as last", [USE_LOCK]);
    return rows[0]?.last === true;
  } catch {
    return false; // the server went away by itself
  }
}

function address(cluster: Cluster, port: number): string {
  return `postgres://${cluster.role}:${cluster.password}@127.0.0.1:${port}/postgres`;
}

/** A port that was free a moment ago. */
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
