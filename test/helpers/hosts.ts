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

/** Services of one process. A process is replaced then, so that its memory is bounded. */
const MOST = 40;

interface Host {
  readonly child: ChildProcess;
  readonly url: string;
  started: number;
}

/** Processes that run services for tests: one for each process of test files, in which files follow each other. */
export class Hosts {
  readonly #open = new Map<string, Promise<Host>>();
  readonly #folder = mkdtemp(join(tmpdir(), "chorus-host-"));
  readonly #exits: Promise<unknown>[] = [];

  /** @param of names the process of test files @param program starts the service @returns where to send an order */
  async urlFor(of: string, program: string): Promise<string> {
    let host = this.#open.get(of);
    const found = await host;
    if (host === undefined || !found?.child.connected || found.started >= MOST) {
      if (found?.child.connected) found.child.send("retire");
      host = this.#start(program);
      this.#open.set(of, host);
    }
    const { url } = await host.then((one) => Object.assign(one, { started: one.started + 1 }));
    return url;
  }

  async close(): Promise<void> {
    for (const host of this.#open.values()) (await host).child.disconnect();
    await Promise.all(this.#exits);
    await rm(await this.#folder, { recursive: true, force: true });
  }

  async #start(program: string): Promise<Host> {
    const module = join(dirname(program), "process-replica.js");
    const child = fork(join(import.meta.dirname, "service-host.ts"), [module], {
      // Outside the repository, because a developer's catalogue file there would be read.
      cwd: await this.#folder,
      env: CHILD_ENV,
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
    this.#exits.push(once(child, "exit"));
    const [line] = await once(child.stdout ?? child, "data");
    return { child, url: String(line).trim(), started: 0 };
  }
}
