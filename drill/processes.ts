import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chown } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Debian packages that the drill runs. */
const PACKAGES = "haproxy pgbouncer postgresql";
/** Oldest version of Postgres that Chorus supports. */
const POSTGRES = 15;
/** Longest wait for a port, and for a process to end after its stop signal, in milliseconds. */
const START_MS = 30_000;
const STOP_MS = 15_000;

/** Programs of the Debian packages. */
export interface Programs {
  readonly haproxy: string;
  readonly pgbouncer: string;
  /** A program of Postgres, such as `initdb`. */
  postgres(name: string): string;
}

/** Finds the programs. @throws Error that names the packages to install */
export function findPrograms(): Programs {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).map(Number) : [];
  const newest = Math.max(0, ...versions.filter(Number.isInteger));
  const [haproxy, pgbouncer] = ["/usr/sbin/haproxy", "/usr/sbin/pgbouncer"] as const;
  if (newest < POSTGRES || !existsSync(haproxy) || !existsSync(pgbouncer)) {
    throw new Error(`The drill needs Debian packages. Run: apt-get install --no-install-recommends ${PACKAGES}`);
  }
  return { haproxy, pgbouncer, postgres: (name) => join(root, String(newest), "bin", name) };
}

/** User and group that run Postgres and PgBouncer: they refuse to run as root. Empty for any other user. */
const account = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};

function idOf(option: string): number {
  return Number(spawnSync("id", [option, "postgres"]).stdout.toString() || Number.NaN);
}

/** Gives a folder or file to the account of the database. */
export async function hand(path: string): Promise<void> {
  if (account.uid !== undefined) await chown(path, account.uid, account.gid);
}

/** Runs a program to its end with the account of the database. @throws Error with its output */
export function runProgram(program: string, args: readonly string[], env: Record<string, string> = {}): void {
  execFileSync(program, args, { ...account, env: { PATH: process.env.PATH, ...env }, cwd: "/", stdio: "pipe" });
}

/** A process that runs until it is stopped. */
export interface Running extends AsyncDisposable {
  readonly child: ChildProcess;
  /** Ends it and its children at once, as a machine that loses its power. */
  kill(): Promise<void>;
}

/**
 * Starts a program in the foreground, with the account of the database.
 * @param stop the signal that ends it in order
 */
export function startProgram(program: string, args: readonly string[], stop: NodeJS.Signals): Running {
  const child = spawn(program, args, { ...account, cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data) => (output = (output + data).slice(-4_000)));
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  let stopping = false;
  child.once("exit", (code) => {
    if (!stopping) console.error(`${program} ended with code ${code}:\n${output}`);
  });
  return {
    child,
    async kill() {
      stopping = true;
      const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").split(" ").filter(Boolean);
      child.kill("SIGKILL");
      for (const pid of children) killNow(Number(pid));
      await ended;
    },
    async [Symbol.asyncDispose]() {
      if (!isRunning()) return;
      stopping = true;
      child.kill(stop);
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

/** Waits until something listens. @throws Error after 30 s */
export function listens(host: string, port: number): Promise<void> {
  return succeeds(async () => {
    const socket = connect({ host, port });
    await once(socket, "connect").finally(() => socket.destroy());
  });
}

/** Repeats something until it succeeds. @throws its error after 30 s */
export async function succeeds(run: () => void | Promise<void>): Promise<void> {
  for (const end = performance.now() + START_MS; ; await sleep(50)) {
    try {
      await run();
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
    }
  }
}

/** Sends a command to the socket of HAProxy and returns its answer. */
export async function tellHaproxy(path: string, command: string): Promise<string> {
  const socket = connect(path);
  socket.write(`${command}\n`);
  let answer = "";
  for await (const data of socket) answer += data;
  return answer.trim();
}
