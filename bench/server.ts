import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Allocated } from "./allocated.ts";

/** Timeouts of starting and stopping a server, in milliseconds. */
const START_MS = 60_000;
const STOP_MS = 10_000;
/** Characters of a server's latest output that are kept for error messages. */
const OUTPUT_LENGTH = 4_000;
/**
 * Raises the limit of open files for the shell and what it starts, as far as that is allowed. Tries it in a subshell
 * first, because a failure ends some shells.
 */
const RAISE_LIMIT = "if (ulimit -n 65536) 2>/dev/null; then ulimit -n 65536; else ulimit -n $(ulimit -H -n); fi";
/** Length of a tick in /proc/<pid>/stat, in microseconds, on all common Linux systems. */
const TICK_US = 10_000;

/** Cores of the machine. Read before this process is pinned, because pinning changes the result. */
export const cores = availableParallelism();

/** Whether the server under test and the load get separate cores. Needs `taskset` (Linux) and at least two cores. */
export const pinned = cores > 1 && hasTaskset();

/** Cores of the server under test, and of all other processes. */
const CORES = { server: "0", rest: cores > 2 ? `1-${cores - 1}` : "1" };

export interface Server extends AsyncDisposable {
  port: number;
  /** CPU time of the process and its children so far, in microseconds; undefined on systems other than Linux. */
  cpuMicros(): number | undefined;
  /** Heap allocated so far, in bytes; see `Allocated`. Undefined for a server that does not trace its collections. */
  allocatedBytes(): number | undefined;
  /** Resident memory of the process, in bytes; undefined on systems other than Linux. */
  residentBytes(): number | undefined;
}

/** Moves this process and its children off the core of the server under test. */
export function pinSelf(): void {
  if (pinned) execFileSync("taskset", ["-a", "-cp", CORES.rest, String(process.pid)], { stdio: "ignore" });
}

/** The command that runs the command after it on the cores of a place; empty if cores are not assigned. */
export function placement(place: keyof typeof CORES): string[] {
  return pinned ? ["taskset", "-c", CORES[place]] : [];
}

/** Option of Node with which the allocations of a server are known. It prints a line for each collection. */
export const TRACE_GC = "--trace-gc";

/** Option of Node with which `npm start` starts the service. */
export const LARGE_PAGES = "--use-largepages=silent";

/** The command that runs a script with this version of Node. Options of Node come before the script. */
export function node(...args: Array<string | number>): string[] {
  return [process.execPath, ...args.map(String)];
}

/**
 * Most open files of a started server. Tries to raise the limit to 65,536; where that is not allowed, it is the hard
 * limit of this process.
 */
export function openFilesLimit(): number {
  const limit = execFileSync("sh", ["-c", `${RAISE_LIMIT}; ulimit -n`])
    .toString()
    .trim();
  return limit === "unlimited" ? Infinity : Number(limit);
}

/**
 * Starts a server and waits until it listens. Disposing it sends SIGTERM, and SIGKILL after 10 s.
 * @throws Error with the latest output if the command exits or does not listen within 60 s
 */
export async function startServer(
  command: string[],
  options: { port: number; place: keyof typeof CORES; env?: Record<string, string>; signal: AbortSignal },
): Promise<Server> {
  const { port, place, env = {}, signal } = options;
  signal.throwIfAborted();
  const child = spawn("sh", ["-c", `${RAISE_LIMIT}; exec "$@"`, "sh", ...placement(place), ...command], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    // Ctrl-C must reach only the benchmark, which then stops its servers in order.
    detached: true,
  });
  let output = "";
  const allocated = command.includes(TRACE_GC) ? new Allocated() : undefined;
  child.stdout.on("data", (data) => allocated?.push(String(data)));
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => {
      output = (output + data).slice(-OUTPUT_LENGTH);
    });
  }
  const server: Server = {
    port,
    cpuMicros: () => cpuMicros(child),
    allocatedBytes: () => allocated?.bytes,
    residentBytes: () => residentBytes(child),
    [Symbol.asyncDispose]: () => stop(child),
  };
  try {
    const deadline = performance.now() + START_MS;
    while (!(await listens(port))) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline)
        throw new Error(`${command.join(" ")} did not start. Its output:\n${output}`);
      await sleep(50, undefined, { signal });
    }
    return server;
  } catch (error) {
    await stop(child);
    throw error;
  }
}

/** Finds free ports. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  return servers.map((server) => {
    const address = server.address();
    server.close();
    return typeof address === "object" && address ? address.port : 0;
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await exited;
  clearTimeout(timer);
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

function cpuMicros({ pid }: ChildProcess): number | undefined {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
    const ticks = [pid, ...children].map((one) => {
      // The command name may contain spaces. After it, utime and stime are the 12th and 13th field.
      const fields = readFileSync(`/proc/${one}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      return Number(fields[11]) + Number(fields[12]);
    });
    return ticks.reduce((sum, count) => sum + count, 0) * TICK_US;
  } catch {
    return undefined;
  }
}

function residentBytes({ pid }: ChildProcess): number | undefined {
  try {
    const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
  } catch {
    return undefined;
  }
}

function hasTaskset(): boolean {
  try {
    execFileSync("taskset", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
