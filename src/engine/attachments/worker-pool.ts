import { Worker } from "node:worker_threads";
import { onAbort } from "../../abort.ts";
import { Failure, invalid } from "../../failure.ts";
import type { Job, Report, Result } from "./worker.ts";

export interface WorkerPoolOptions {
  /** Threads at most; they start when needed. All but one of them, if there are several, take heavy jobs. */
  threads: number;
  /** Most time for one file, in milliseconds. */
  milliseconds: number;
  /** Most memory of a thread, in bytes: its heap and what it holds outside of it. */
  memory: number;
  /** Jobs, and bytes of files, that may wait for a thread. */
  waiting: number;
  waitingBytes: number;
  /** The worker's program. */
  script: URL;
}

export interface Task {
  job: Omit<Job, "milliseconds">;
  /** Whether it may take long. */
  heavy: boolean;
  signal: AbortSignal;
  /** Whose job it is. Nobody has more than one heavy job running, or more than a quarter of what may wait. */
  owner: string;
}

interface Waiting extends Task {
  bytes: number;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

interface Thread {
  worker: Worker;
  /** What it works on; its memory and its time are watched while there is something. */
  running?: { task: Waiting; index: number | undefined; since: number; watch: NodeJS.Timeout };
  /** Most memory that was seen, in bytes. */
  peak: number;
}

/** How often a thread's memory and time are looked at: inflating fills 25 to 50 MB in between. */
const WATCH_MS = 50;

/** Threads that read files: what takes too long, or too much memory, ends with its thread, never with the process. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #threads = new Set<Thread>();
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #closed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /**
   * Runs a job in a thread. The files are copied there when it starts.
   * @throws Failure invalid_request naming the file; `overloaded` while too much is waiting and after `close`; `internal` if the thread
   * died through no fault of a file; the reason of the signal once that has aborted
   */
  run(task: Task): Promise<Result> {
    const bytes = task.job.files.reduce((sum, { data }) => sum + data.length, 0);
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    if (task.signal.aborted) throw task.signal.reason;
    const own = this.#waiting.filter(({ owner }) => owner === task.owner).length;
    const full =
      this.#waiting.length >= this.#options.waiting ||
      own >= this.#options.waiting / 4 ||
      this.#waitingBytes + bytes > this.#options.waitingBytes;
    if (this.#closed || full) throw new Failure("overloaded", { retryAfterMs: 1000 });
    const waiting: Waiting = { ...task, bytes, resolve, reject };
    this.#waiting.push(waiting);
    this.#waitingBytes += bytes;
    const stopListening = onAbort(task.signal, () => this.#abandon(waiting));
    this.#next();
    return promise.finally(stopListening);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const task of this.#waiting.splice(0)) task.reject(new Failure("overloaded"));
    await Promise.all([...this.#threads].map((thread) => this.#end(thread, new Failure("overloaded"))));
  }

  /** Starts what may start: heavy jobs leave one thread to the light ones, and those of one owner the others to other owners. */
  #next(): void {
    for (;;) {
      const { threads } = this.#options;
      const running = [...this.#threads].flatMap(({ running }) => (running?.task.heavy ? [running.task.owner] : []));
      const isFree = running.length < Math.max(1, threads - 1);
      const at = this.#waiting.findIndex(({ heavy, owner }) => !heavy || (isFree && !running.includes(owner)));
      const thread = at < 0 ? undefined : this.#idle();
      if (!thread) return;
      const [task] = this.#waiting.splice(at, 1);
      if (!task) return;
      this.#waitingBytes -= task.bytes;
      this.#begin(thread, task);
    }
  }

  #idle(): Thread | undefined {
    const idle = [...this.#threads].find(({ running }) => !running);
    if (idle || this.#threads.size >= this.#options.threads) return idle;
    // Memory is watched; the limit is for what grows faster than that. What a library prints is not read
    // from the streams, so it gets nowhere; to read them would keep the process alive.
    const worker = new Worker(this.#options.script, {
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(this.#options.memory / 1024 / 1024) },
      stdout: true,
      stderr: true,
    });
    const thread: Thread = { worker, peak: 0 };
    this.#threads.add(thread);
    let cause: unknown;
    worker.on("message", (report: Report) => this.#hear(thread, report));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => this.#died(thread, cause));
    return thread;
  }

  #begin(thread: Thread, task: Waiting): void {
    const watch = setInterval(() => void this.#watch(thread), WATCH_MS);
    thread.running = { task, index: task.job.files[0]?.index, since: performance.now(), watch };
    // A copy of its own for the thread, because the caller's bytes may be part of a larger buffer, all of which would be sent.
    const files = task.job.files.map((file) => ({ ...file, data: new Uint8Array(file.data) }));
    const job: Job = { ...task.job, files, milliseconds: this.#options.milliseconds };
    // Only a job that someone waits for keeps the process alive.
    thread.worker.ref();
    thread.worker.postMessage(
      job,
      files.map(({ data }) => data.buffer),
    );
  }

  #hear(thread: Thread, report: Report): void {
    const { running } = thread;
    if (!running) return;
    if (report.kind === "reading") {
      running.index = report.index;
      running.since = performance.now();
      return;
    }
    thread.worker.unref();
    const task = this.#take(thread);
    if (report.kind === "done") task?.resolve(report.result);
    else task?.reject(fault(report.index, report.part, report.message));
    // An idle thread keeps what a large file took: 400 MB, against 44 MB some seconds after its end.
    if (thread.peak > this.#options.memory / 3) void this.#end(thread);
    else this.#next();
  }

  async #watch(thread: Thread): Promise<void> {
    const { running } = thread;
    if (!running) return;
    if (performance.now() - running.since > this.#options.milliseconds) {
      await this.#end(thread, fault(running.index, "data", "takes too long to read. Send a smaller or simpler file."));
      return;
    }
    const heap = await thread.worker.getHeapStatistics().catch(() => undefined);
    if (!heap || thread.running !== running) return;
    const memory = heap.used_heap_size + heap.external_memory;
    thread.peak = Math.max(thread.peak, memory);
    if (memory > this.#options.memory) await this.#end(thread, needsTooMuch(running.index));
  }

  /** Ends a thread, and with an error what it works on, if anything; another one starts for what waits. */
  async #end(thread: Thread, error?: unknown): Promise<void> {
    this.#threads.delete(thread);
    this.#take(thread)?.reject(error);
    const ended = thread.worker.terminate();
    this.#next();
    await ended;
  }

  #died(thread: Thread, cause: unknown): void {
    this.#threads.delete(thread);
    const index = thread.running?.index;
    const isMemory = cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY";
    this.#take(thread)?.reject(isMemory ? needsTooMuch(index) : new Failure("internal", { cause }));
    this.#next();
  }

  #abandon(task: Waiting): void {
    const at = this.#waiting.indexOf(task);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      this.#waitingBytes -= task.bytes;
    }
    task.reject(task.signal.reason);
    const thread = [...this.#threads].find(({ running }) => running?.task === task);
    if (thread) void this.#end(thread, task.signal.reason);
  }

  #take(thread: Thread): Waiting | undefined {
    const { running } = thread;
    delete thread.running;
    clearInterval(running?.watch);
    return running?.task;
  }
}

/** @param index of the file; none when it is about all of them together */
function fault(index: number | undefined, part: string, message: string): Failure {
  const field = index === undefined ? "attachments" : `attachments[${index}].${part}`;
  return invalid(field, `${field} ${message}`);
}

function needsTooMuch(index: number | undefined): Failure {
  return fault(index, "data", "needs too much memory to read. Send a smaller or simpler file.");
}
