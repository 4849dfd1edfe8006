import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Explored, Job, Verdict } from "./rules-worker.ts";

/** Longest time for one mutant, in milliseconds: for one that ends neither by a count nor by a test's time. */
const LONGEST_MS = 240_000;

/** The process that runs schedules and tests against mutants. It is replaced when a mutant has spoilt it. */
export class MutantProcess {
  readonly #folder: string;
  readonly #tests: string;
  #child: ChildProcess | undefined;

  /**
   * @param folder with the instrumented project
   * @param tests part of the paths of the tests that it runs
   */
  constructor(folder: string, tests: string) {
    this.#folder = folder;
    this.#tests = tests;
  }

  /** Mutants that are reached before any test begins, and what each test reaches. */
  async explore(): Promise<{ atStart: string[]; explored: Explored[] }> {
    const atStart = await this.#start("");
    return { atStart, explored: (await this.#ask({ explore: true }, 600_000)) as Explored[] };
  }

  /** @param isAtStart whether the mutant is reached before any test begins, so that it needs a new process */
  async check(job: Extract<Job, { mutant: string }>, isAtStart: boolean): Promise<Verdict> {
    for (let isRepeated = false; ; isRepeated = true) {
      const verdict = await this.#checkOnce(job, isAtStart);
      if (isAtStart || verdict.isDirty) this.stop();
      const isDoubtful = verdict.isDirty && verdict.killer !== undefined;
      if (!isDoubtful || isRepeated) return verdict;
    }
  }

  async #checkOnce(job: Extract<Job, { mutant: string }>, isAtStart: boolean): Promise<Verdict> {
    try {
      if (isAtStart) this.stop();
      if (!this.#child) await this.#start(isAtStart ? job.mutant : "");
      return (await this.#ask(job, LONGEST_MS)) as Verdict;
    } catch (error) {
      this.stop();
      return { killer: `${(error as Error).message}`, isDirty: false };
    }
  }

  stop(): void {
    this.#child?.kill("SIGKILL");
    this.#child = undefined;
  }

  async #start(mutant: string): Promise<string[]> {
    const preload = new URL("./rules-switch.ts", import.meta.url).href;
    const env = {
      ...process.env,
      NODE_OPTIONS: `--disable-warning=ExperimentalWarning --import=${preload}`,
      CHORUS_MUTANT: mutant,
      CHORUS_MUTATE_FOLDER: this.#folder,
      CHORUS_MUTATE_TESTS: this.#tests,
    };
    const stdio = ["ignore", "ignore", "ignore", "ipc"] as const;
    this.#child = fork(new URL("./rules-worker.ts", import.meta.url), { cwd: this.#folder, env, stdio: [...stdio] });
    return ((await this.#answer(30_000)) as { atStart: string[] }).atStart;
  }

  async #ask(job: Job, ms: number): Promise<unknown> {
    const answer = this.#answer(ms);
    this.#child?.send(job);
    return answer;
  }

  async #answer(ms: number): Promise<unknown> {
    const child = this.#child as ChildProcess;
    const timeout = AbortSignal.timeout(ms);
    const ended = new AbortController();
    try {
      const signal = AbortSignal.any([timeout, ended.signal]);
      return await Promise.race([
        once(child, "message", { signal }).then(([message]) => message),
        once(child, "exit", { signal }).then(() => {
          throw new Error("the process ended");
        }),
      ]);
    } catch (error) {
      throw timeout.aborted ? new Error("the process did not answer") : error;
    } finally {
      ended.abort();
    }
  }
}
