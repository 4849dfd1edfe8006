import { type Transferable, Worker } from "node:worker_threads";
import { onAbort, type Signal } from "./abort.ts";
import { Failure } from "./failure.ts";
import type { Report } from "./worker-job.ts";

/** The limit that a job exceeded. */
export type JobLimit = "time" | "memory";

export interface WorkerPoolOptions {
  /** Most threads; they start on demand. One of several is reserved for light jobs. */
  threads: number;
  /** Timeout of a job between two reports of progress, in milliseconds. */
  milliseconds: number;
  /** Most memory of a thread, in bytes: heap and external memory. */
  memory: number;
  /** Most jobs that may wait for a thread. */
  waiting: number;
  /** Most bytes of jobs that may wait for a thread. */
  waitingBytes: number;
  /** The worker's program, which calls `serveJobs`. */
  script: URL;
  /**
   * The failure of a job that exceeded a limit.
   * @param part the part of the job that ran, as `serveJobs` reported it
   */
  exceeded(limit: JobLimit, part: number | undefined): Failure;
}

interface Task<Job> {
  job: Job;
  /** Buffers of the job that move to the thread. All others are copied. */
  transfer: readonly Transferable[];
  /** Size of the job. */
  bytes: number;
  /** Whether the job can take long. */
  heavy: boolean;
  signal: Signal;
  /** The workspace of the job. Each has at most one running heavy job and a quarter of the waiting jobs. */
  owner: string;
}

interface Waiting<Job, Result> extends Task<Job> {
  resolve(result: Result): void;
  reject(error: unknown): void;
}

interface Thread<Job, Result> {
  worker: Worker;
  /** The job that runs, whose memory and time are checked. */
  running?: { task: Waiting<Job, Result>; part: number | undefined; since: number; watch: NodeJS.Timeout };
  /** Highest memory that was measured, in bytes. */
  peak: number;
}

/** Interval of the checks of memory and time, in which unpacking can fill 50 MB. */
const WATCH_MS = 50;

/** Runs jobs in threads. A job that takes too much time or memory ends its thread, never the process. */
export class WorkerPool<Job, Result> {
  readonly #options: WorkerPoolOptions;
  readonly #threads = new Set<Thread<Job, Result>>();
  readonly #waiting: Waiting<Job, Result>[] = [];
  #waitingBytes = 0;
  #closed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /**
   * Runs a job in a thread.
   * @throws Failure of the job; `overloaded` while too much is waiting and after `close`; `internal` if the thread
   *   crashed for another reason; the reason of the signal when it aborts
   */
  run(task: Task<Job>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    if (task.signal.aborted) throw task.signal.reason;
    const ofOwner = this.#waiting.filter(({ owner }) => owner === task.owner).length;
    const isFull =
      this.#waiting.length >= this.#options.waiting ||
      ofOwner >= this.#options.waiting / 4 ||
      this.#waitingBytes + task.bytes > this.#options.waitingBytes;
    if (this.#closed || isFull) throw new Failure("overloaded", { retryAfterMs: 1000 });
    const waiting: Waiting<Job, Result> = { ...task, resolve, reject };
    this.#waiting.push(waiting);
    this.#waitingBytes += task.bytes;
    const stopListening = onAbort(task.signal, () => this.#cancel(waiting));
    this.#next();
    return promise.finally(stopListening);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const task of this.#waiting.splice(0)) task.reject(new Failure("overloaded"));
    await Promise.all([...this.#threads].map((thread) => this.#end(thread, new Failure("overloaded"))));
  }

  #next(): void {
    for (;;) {
      const task = this.#first();
      const thread = task && this.#idle();
      if (!thread) return;
      this.#waiting.splice(this.#waiting.indexOf(task), 1);
      this.#waitingBytes -= task.bytes;
      this.#begin(thread, task);
    }
  }

  /**
   * The job to start next: of the owner with the fewest running jobs, and of those the one that waits longest. Heavy
   * jobs leave one thread for light ones, and one owner runs one heavy job at a time.
   */
  #first(): Waiting<Job, Result> | undefined {
    const running = [...this.#threads].flatMap((thread) => thread.running?.task ?? []);
    const heavy = running.filter((task) => task.heavy);
    const isFree = heavy.length < Math.max(1, this.#options.threads - 1);
    const load = (owner: string) => running.filter((task) => task.owner === owner).length;
    return this.#waiting
      .filter((task) => !task.heavy || (isFree && !heavy.some(({ owner }) => owner === task.owner)))
      .reduce<Waiting<Job, Result> | undefined>(
        (first, task) => (first && load(first.owner) <= load(task.owner) ? first : task),
        undefined,
      );
  }

  #idle(): Thread<Job, Result> | undefined {
    const idle = [...this.#threads].find(({ running }) => !running);
    if (idle || this.#threads.size >= this.#options.threads) return idle;
    // The heap limit stops growth between two checks. The output of libraries is discarded: the streams are never read,
    // because reading them would keep the process alive.
    const worker = new Worker(this.#options.script, {
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(this.#options.memory / 1024 / 1024) },
      stdout: true,
      stderr: true,
    });
    const thread: Thread<Job, Result> = { worker, peak: 0 };
    this.#threads.add(thread);
    let cause: unknown;
    worker.on("message", (report: Report<Result>) => this.#receive(thread, report));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => this.#handleExit(thread, cause));
    return thread;
  }

  #begin(thread: Thread<Job, Result>, task: Waiting<Job, Result>): void {
    const watch = setInterval(() => void this.#check(thread), WATCH_MS);
    thread.running = { task, part: undefined, since: performance.now(), watch };
    // A thread keeps the process alive only while a job runs.
    thread.worker.ref();
    thread.worker.postMessage(task.job, task.transfer);
  }

  #receive(thread: Thread<Job, Result>, report: Report<Result>): void {
    const { running } = thread;
    if (!running) return;
    if (report.kind === "progress") {
      running.part = report.part;
      running.since = performance.now();
      return;
    }
    thread.worker.unref();
    const task = this.#take(thread);
    if (report.kind === "done") task?.resolve(report.result);
    else task?.reject(new Failure(report.failure, report));
    // Replaces a thread after a large job, because an idle thread does not return its memory.
    if (thread.peak > this.#options.memory / 3) void this.#end(thread);
    else this.#next();
  }

  async #check(thread: Thread<Job, Result>): Promise<void> {
    const { running } = thread;
    if (!running) return;
    const { milliseconds, memory, exceeded } = this.#options;
    if (performance.now() - running.since > milliseconds) {
      await this.#end(thread, exceeded("time", running.part));
      return;
    }
    const heap = await thread.worker.getHeapStatistics().catch(() => undefined);
    if (!heap || thread.running !== running) return;
    const used = heap.used_heap_size + heap.external_memory;
    thread.peak = Math.max(thread.peak, used);
    if (used > memory) await this.#end(thread, exceeded("memory", running.part));
  }

  /** Ends a thread, rejects its job with `error`, and starts the next job in another thread. */
  async #end(thread: Thread<Job, Result>, error?: unknown): Promise<void> {
    this.#threads.delete(thread);
    this.#take(thread)?.reject(error);
    const ended = thread.worker.terminate();
    this.#next();
    await ended;
  }

  #handleExit(thread: Thread<Job, Result>, cause: unknown): void {
    this.#threads.delete(thread);
    const part = thread.running?.part;
    const isMemory = cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY";
    const failure = () => (isMemory ? this.#options.exceeded("memory", part) : new Failure("internal", { cause }));
    this.#take(thread)?.reject(failure());
    this.#next();
  }

  #cancel(task: Waiting<Job, Result>): void {
    const at = this.#waiting.indexOf(task);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      this.#waitingBytes -= task.bytes;
    }
    task.reject(task.signal.reason);
    const thread = [...this.#threads].find(({ running }) => running?.task === task);
    if (thread) void this.#end(thread, task.signal.reason);
  }

  #take(thread: Thread<Job, Result>): Waiting<Job, Result> | undefined {
    const { running } = thread;
    delete thread.running;
    clearInterval(running?.watch);
    return running?.task;
  }
}
