import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CHILD_ENV } from "./environment.ts";

/** What a process that runs services is told. A service is named by the file with its output. */
export interface Order {
  readonly order: "start" | "signal" | "end";
  readonly output: string;
  /** Environment of a service that starts. */
  readonly env?: Record<string, string>;
  readonly signal?: NodeJS.Signals;
}

/** The exit code of a service; null while it runs. */
export interface Ended {
  readonly code: number | null;
}

interface Host {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  /** Where to send orders. */
  readonly url: Promise<string>;
  /** Services that were promised a place. */
  started: number;
}

/** Processes that run services for tests: one for each process of test files, in which files follow each other. */
export class Hosts {
  /** The process that takes the next service, by the process of test files. */
  readonly #next = new Map<string, Host>();
  readonly #all: Host[] = [];
  readonly #folder = mkdtemp(join(tmpdir(), "chorus-host-"));
  readonly #most: number;

  /** @param most services of one process. A process is replaced then, so that its memory is bounded. */
  constructor(most = 40) {
    this.#most = most;
  }

  /**
   * @param of names the process of test files
   * @param program starts the service
   * @returns where to send the orders to start, signal and end one service
   */
  async urlFor(of: string, program: string): Promise<string> {
    const folder = await this.#folder;
    let host = this.#next.get(of);
    if (!host?.child.connected || host.started >= this.#most) {
      if (host?.child.connected) host.child.send(host.started);
      host = start(program, folder);
      this.#next.set(of, host);
      this.#all.push(host);
    }
    host.started += 1;
    return host.url;
  }

  async close(): Promise<void> {
    for (const { child } of this.#all) if (child.connected) child.disconnect();
    await Promise.all(this.#all.map(({ exited }) => exited));
    await rm(await this.#folder, { recursive: true, force: true });
  }
}

function start(program: string, folder: string): Host {
  const child = fork(join(import.meta.dirname, "service-host.ts"), [join(dirname(program), "process-replica.js")], {
    // Outside the repository, because a developer's catalogue file there would be read.
    cwd: folder,
    env: CHILD_ENV,
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const url = once(child.stdout ?? child, "data").then(([line]) => String(line).trim());
  return { child, exited: once(child, "exit"), url, started: 0 };
}
