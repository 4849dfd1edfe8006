import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { launch, openCluster, shutDown } from "../../src/store/embedded/cluster.ts";
import { serverState } from "../../src/store/embedded/pid-file.ts";
import { migrate } from "../../src/store/migrate.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { copyCluster } from "./cluster.ts";
import type { Lifetime } from "./lifetime.ts";
import { until } from "./until.ts";

/** Ports that `freePort` has tried. */
let given = 0;

/** A Postgres that a test may stop, crash or freeze. Its commits are durable, as in production. */
export interface DatabaseServer {
  readonly url: string;
  readonly pool: Pool;
  start(): Promise<void>;
  /** Shuts it down cleanly. */
  stop(): Promise<void>;
  /** Crashes it: it writes nothing more, and recovery runs at the next start. */
  crash(): Promise<void>;
  /** Suspends the process that flushes commits in the background, so that each commit is flushed by its session. */
  holdWriter(): Promise<void>;
  /** Kills its processes: what they have not written is lost, as what a disk has not flushed is without power. */
  loseBuffers(): Promise<void>;
  /** Suspends its processes until `thaw`: connections stay open and new ones are accepted, without any answer. */
  freeze(): Promise<void>;
  thaw(): void;
}

/** Starts a migrated Postgres on a free port and removes it after the test. */
export async function startServer(t: Lifetime): Promise<DatabaseServer> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-server-"));
  await chmod(folder, 0o711);
  await copyCluster(folder);
  const cluster = await openCluster(folder, () => undefined);
  const port = await freePort();
  const url = `postgres://${cluster.role}:${cluster.password}@127.0.0.1:${port}/postgres`;
  const pool = openPool(url, { timeoutMs: 30_000 });
  const suspended = new Set<number>();
  const suspend = (pid: number) => {
    if (signal(pid, "SIGSTOP")) suspended.add(pid);
  };
  const endSuspension = (by: "SIGKILL" | "SIGCONT") => {
    for (const pid of suspended) signal(pid, by);
    suspended.clear();
  };
  const status = async () => (await serverState(cluster)).status;
  const postmaster = async () => Number((await readFile(join(cluster.data, "postmaster.pid"), "utf8")).split("\n")[0]);

  const server: DatabaseServer = {
    url,
    pool,
    async start() {
      for (let now = await status(); now !== "ready"; now = await status()) {
        if (now === "absent") await launch(cluster, port);
        await sleep(20);
      }
    },
    stop: () => shutDown(cluster),
    async crash() {
      process.kill(await postmaster(), "SIGQUIT");
      await until(async () => (await status()) === "absent");
    },
    async holdWriter() {
      const [row] = await pool.query<{ pid: number }>(
        "select pid from pg_stat_activity where backend_type = 'walwriter'",
      );
      if (!row) return;
      for (let isHeld = false; !isHeld; ) {
        suspend(row.pid);
        // A process that is suspended while it writes holds a lock that each commit needs.
        const commit = pool.query("select pg_logical_emit_message(true, 'x', '')");
        isHeld = await Promise.race([commit.then(() => true), sleep(2_000, false)]);
        if (!isHeld) server.thaw();
        await commit;
      }
    },
    async loseBuffers() {
      await server.freeze();
      endSuspension("SIGKILL");
      await until(async () => (await status()) === "absent");
    },
    async freeze() {
      const first = await postmaster();
      suspend(first);
      for (const pid of await childrenOf(first)) suspend(pid);
    },
    thaw() {
      endSuspension("SIGCONT");
    },
  };
  t.onTestFinished(async () => {
    server.thaw();
    await pool.end();
    await server.stop().catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
  });
  await server.start();
  await migrate(pool);
  return server;
}

/** @returns false when the process has ended */
function signal(pid: number, name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

async function childrenOf(parent: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid="]);
  return stdout.split("\n").flatMap((line) => {
    const [pid, ppid] = line.trim().split(/\s+/).map(Number);
    return pid !== undefined && ppid === parent ? [pid] : [];
  });
}

/**
 * Finds a port that is free now, for a program that cannot choose one itself. It is below the ports that systems give
 * to those who ask for any (from 32,768 on Linux), and in a range of this process, so that no other test gets it.
 */
export async function freePort(): Promise<number> {
  const first = 10_000 + 500 * Number(process.env.VITEST_POOL_ID ?? 0);
  for (let tries = 0; tries < 500; tries++) {
    const server = createServer().listen(first + (given++ % 500), "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    return port;
  }
  throw new Error(`no port from ${first} to ${first + 499} is free`);
}
