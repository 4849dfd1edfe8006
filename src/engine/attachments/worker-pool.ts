import { Worker } from "node:worker_threads";
import { onAbort } from "../../abort.ts";
import { Failure, invalid } from "../../failure.ts";
import type { Job, Report, Result } from "./worker.ts";

export interface WorkerPoolOptions {
  /** Most threads; they start on demand. One of several is reserved for light jobs. */
  threads: number;
  /** Timeout for each file, in milliseconds. */
  milliseconds: number;
  /** Most memory of a thread, in bytes: heap and external memory. */
  memory: number;
  /** Most jobs that may wait for a thread. */
  waiting: number;
  /** Most bytes of files that may wait for a thread. */
  waitingBytes: number;
  /** The worker's program. */
  script: URL;
}

interface Task {
  job: Omit<Job, "milliseconds">;
  /** Whether the job can take long. */
  heavy: boolean;
  signal: AbortSignal;
  /** The workspace of the job. Each has at most one running heavy job and a quarter of the waiting jobs. */
  owner: string;
}

interface Waiting extends Task {
  bytes: number;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

interface Thread {
  worker: Worker;
  /** The job that runs, whose memory and time are checked. */
  running?: { task: Waiting; index: number | undefined; since: number; watch: NodeJS.Timeout };
  /** Highest memory that was measured, in bytes. */
  peak: number;
}

/** Interval of the checks of memory and time, in which unpacking can fill 50 MB. */
const WATCH_MS = 50;

/** Threads that read files. A file that takes too much time or memory ends its thread, never the process. */
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
   * Runs a job in a thread and copies the files there.
   * @throws Failure invalid_request naming the file; `overloaded` while too much is waiting and after `close`;
   *   `internal` if the thread crashed for another reason; the reason of the signal when it aborts
   */
  run(task: Task): Promise<Result> {
    const bytes = task.job.files.reduce((sum, { data }) => sum + data.length, 0);
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    if (task.signal.aborted) throw task.signal.reason;
    const ofOwner = this.#waiting.filter(({ owner }) => owner === task.owner).length;
    const isFull =
      this.#waiting.length >= this.#options.waiting ||
      ofOwner >= this.#options.waiting / 4 ||
      this.#waitingBytes + bytes > this.#options.waitingBytes;
    if (this.#closed || isFull) throw new Failure("overloaded", { retryAfterMs: 1000 });
    const waiting: Waiting = { ...task, bytes, resolve, reject };
    this.#waiting.push(waiting);
    this.#waitingBytes += bytes;
    const stopListening = onAbort(task.signal, () => this.#cancel(waiting));
    this.#next();
    return promise.finally(stopListening);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const task of this.#waiting.splice(0)) task.reject(new Failure("overloaded"));
    await Promise.all([...this.#threads].map((thread) => this.#end(thread, new Failure("overloaded"))));
  }

  /** Starts jobs: heavy ones leave one thread for light ones, and one owner runs one heavy job at a time. */
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
    // The heap limit stops growth between two checks. The output of libraries is discarded: the streams are never read,
    // because reading them would keep the process alive.
    const worker = new Worker(this.#options.script, {
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(this.#options.memory / 1024 / 1024) },
      stdout: true,
      stderr: true,
    });
    const thread: Thread = { worker, peak: 0 };
    this.#threads.add(thread);
    let cause: unknown;
    worker.on("message", (report: Report) => this.#receive(thread, report));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => this.#handleExit(thread, cause));
    return thread;
  }

  #begin(thread: Thread, task: Waiting): void {
    const watch = setInterval(() => void this.#check(thread), WATCH_MS);
    thread.running = { task, index: task.job.files[0]?.index, since: performance.now(), watch };
    // Copies the bytes, because transferring them would send the whole buffer of which they may be a part.
    const files = task.job.files.map((file) => ({ ...file, data: new Uint8Array(file.data) }));
    const job: Job = { ...task.job, files, milliseconds: this.#options.milliseconds };
    // A thread keeps the process alive only while a job runs.
    thread.worker.ref();
    thread.worker.postMessage(
      job,
      files.map(({ data }) => data.buffer),
    );
  }

  #receive(thread: Thread, report: Report): void {
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
    else task?.reject(fileFailure(report.index, report.part, report.message));
    // Replaces a thread after a large file, because an idle thread does not return its memory.
    if (thread.peak > this.#options.memory / 3) void this.#end(thread);
    else this.#next();
  }

  async #check(thread: Thread): Promise<void> {
    const { running } = thread;
    if (!running) return;
    if (performance.now() - running.since > this.#options.milliseconds) {
      await this.#end(
        thread,
        fileFailure(running.index, "data", "takes too long to read. Send a smaller or simpler file."),
      );
      return;
    }
    const heap = await thread.worker.getHeapStatistics().catch(() => undefined);
    if (!heap || thread.running !== running) return;
    const memory = heap.used_heap_size + heap.external_memory;
    thread.peak = Math.max(thread.peak, memory);
    if (memory > this.#options.memory) await this.#end(thread, outOfMemory(running.index));
  }

  /** Ends a thread, rejects its job with `error`, and starts the next job in another thread. */
  async #end(thread: Thread, error?: unknown): Promise<void> {
    this.#threads.delete(thread);
    this.#take(thread)?.reject(error);
    const ended = thread.worker.terminate();
    this.#next();
    await ended;
  }

  #handleExit(thread: Thread, cause: unknown): void {
    this.#threads.delete(thread);
    const index = thread.running?.index;
    const isMemory = cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY";
    this.#take(thread)?.reject(isMemory ? outOfMemory(index) : new Failure("internal", { cause }));
    this.#next();
  }

  #cancel(task: Waiting): void {
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

/** @param index of the file; undefined when the failure concerns all files together */
function fileFailure(index: number | undefined, part: string, message: string): Failure {
  const field = index === undefined ? "attachments" : `attachments[${index}].${part}`;
  return invalid(field, `${field} ${message}`);
}

function outOfMemory(index: number | undefined): Failure {
  return fileFailure(index, "data", "needs too much memory to read. Send a smaller or simpler file.");
}
