import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { CliCall, CliResult } from "./cli.ts";
import { CHILD_ENV } from "./environment.ts";

/** Two commands run at the same time, which is as many as the processors of a small machine. */
const MOST = 2;

/** Threads that run the command line, for all tests of a run. */
export class CliThreads {
  readonly #idle: Worker[] = [];
  readonly #waiting: ((worker: Worker) => void)[] = [];
  readonly #all: Worker[] = [];

  async run(call: CliCall): Promise<CliResult> {
    const worker = await this.#take();
    try {
      worker.postMessage(call);
      const [result] = await once(worker, "message");
      return result;
    } finally {
      const next = this.#waiting.shift();
      if (next) next(worker);
      else this.#idle.push(worker);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((worker) => worker.terminate()));
  }

  async #take(): Promise<Worker> {
    const idle = this.#idle.pop();
    if (idle) return idle;
    if (this.#all.length === MOST) return new Promise((resolve) => this.#waiting.push(resolve));
    const worker = new Worker(new URL("cli-thread.ts", import.meta.url), { env: { ...CHILD_ENV } });
    this.#all.push(worker);
    return worker;
  }
}
