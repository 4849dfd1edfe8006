import { availableParallelism } from "node:os";
import { type Transferable, Worker } from "node:worker_threads";
import { Failure } from "../contract/failure.ts";
import { LinkedAbort, onAbort, type Signal } from "./abort.ts";
import { FairQueue, type Permit, QueueRefusal } from "./fair-queue.ts";
import { NICENESS } from "./thread-priority.ts";
import type { Report } from "./worker-job.ts";

/** The limit that a job exceeded. */
export type JobLimit = "time" | "memory";

/** How long a job can take: up to 50 ms, up to a second, or longer. */
export type Weight = "light" | "medium" | "heavy";

/** The weight of work on a text of this size. Counting the slowest text takes 50 ms for 64 KB, a second for 1 MB. */
export function weightOf(bytes: number): Weight {
  if (bytes <= 64 * 1024) return "light";
  return bytes <= 1024 * 1024 ? "medium" : "heavy";
}

export interface WorkerPoolOptions {
  /** Most threads for the jobs of each weight. They start on demand, or with `start`. */
  threads: number;
  /** Most processor time of a job between two reports of progress, in milliseconds. */
  milliseconds: number;
  /** Most memory of a thread, in bytes: heap and external memory. */
  memory: number;
  /** Most jobs of each weight that may wait for a thread; a quarter of them of one owner. */
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

/** One core is left for the event loop. More threads would only use more memory. */
export const WORKER_THREADS = Math.min(2, Math.max(1, availableParallelism() - 1));

interface Task<Job> {
  job: Job;
  /** Buffers of the job that move to the thread. All others are copied. */
  transfer: readonly Transferable[];
  /** Size of the job. */
  bytes: number;
  weight: Weight;
  signal: Signal;
  /** The workspace of the job. */
  owner: string;
}

interface Running<Result> {
  readonly done: PromiseWithResolvers<Result>;
  part: number | undefined;
  /** When the job began or last reported progress. */
  since: number;
  /** Processor time of the thread at the first check after that, in milliseconds; undefined before. */
  usedBefore: number | undefined;
  /** A check waits for the thread. */
  isChecking: boolean;
  /** When the job's signal aborted. */
  leftAt: number;
  readonly watch: NodeJS.Timeout;
}

interface Thread<Result> {
  readonly worker: Worker;
  readonly group: ThreadGroup<Result>;
  /** The job that runs, whose memory and time are checked. */
  running?: Running<Result>;
  /** Highest memory that was measured, in bytes. */
  peak: number;
}

/** The threads for the jobs of one weight. */
interface ThreadGroup<Result> {
  readonly niceness: number;
  /** Shares the threads between owners. */
  readonly queue: FairQueue;
  readonly threads: Set<Thread<Result>>;
}

/** Interval of the checks of memory and time, in which unpacking can fill 50 MB. */
const WATCH_MS = 50;

/**
 * Longest time between two reports of progress, as a multiple of the processor time that is allowed. A job that takes
 * longer did not get the processor, which its caller is not to blame for.
 */
const PATIENCE = 6;

/**
 * Time that a job has to end after its signal has aborted, in milliseconds. The start of another thread takes 0.3 to
 * 1 s of a busy core. If callers who leave ended it at once, the jobs of others would wait for that.
 */
const LEFT_MS = 1_000;

/**
 * Runs jobs in threads, which are shared fairly between owners. The jobs of each weight have threads of their own, so
 * none waits for one that takes much longer. The heavier the jobs, the lower their priority. Where jobs are not light,
 * one owner leaves one thread to others. A job that takes too much time or memory ends its thread, never the process.
 */
export class WorkerPool<Job, Result> {
  readonly #options: WorkerPoolOptions;
  readonly #groups: Readonly<Record<Weight, ThreadGroup<Result>>>;
  readonly #closing = new AbortController();
  #waitingBytes = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const { threads: capacity, waiting: maxWaiting } = options;
    const bounds = { capacity, maxWaiting, maxWaitingPerKey: Math.ceil(maxWaiting / 4) };
    const groupOf = (weight: Weight): ThreadGroup<Result> => ({
      niceness: NICENESS[weight],
      queue: new FairQueue(weight === "light" ? bounds : { ...bounds, perFree: 1 }),
      threads: new Set(),
    });
    this.#groups = { light: groupOf("light"), medium: groupOf("medium"), heavy: groupOf("heavy") };
  }

  /**
   * Runs a job in a thread.
   * @throws Failure of the job; `overloaded` while too much is waiting and after `close`; `internal` if the thread
   *   crashed for another reason; the reason of the signal when it aborts
   */
  async run(task: Task<Job>): Promise<Result> {
    const group = this.#groups[task.weight];
    using stack = new DisposableStack();
    stack.use(await this.#wait(group, task));
    const running = this.#begin(this.#idle(group), task);
    // The caller may leave before the job ends, whose thread is not free until then.
    const permit = stack.move();
    const done = running.done.promise.finally(() => permit.dispose());
    const left = Promise.withResolvers<never>();
    const stopListening = onAbort(task.signal, () => {
      running.leftAt = performance.now();
      left.reject(task.signal.reason);
    });
    try {
      return await Promise.race([done, left.promise]);
    } finally {
      stopListening();
    }
  }

  /** Starts a thread for jobs of a weight, so that the first of them does not wait for its start. */
  start(weight: Weight): void {
    const group = this.#groups[weight];
    // A thread keeps the process alive only while a job runs.
    if (group.threads.size === 0) this.#idle(group).worker.unref();
  }

  async close(): Promise<void> {
    this.#closing.abort(overloaded());
    const threads = Object.values(this.#groups).flatMap((group) => [...group.threads]);
    await Promise.all(threads.map((thread) => this.#end(thread, overloaded())));
  }

  /** Waits for a thread. @throws Failure overloaded; the reason of the signal */
  async #wait({ queue }: ThreadGroup<Result>, { owner, bytes, signal }: Task<Job>): Promise<Permit> {
    signal.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    const permit = queue.tryAcquire(owner);
    if (permit) return permit;
    if (this.#waitingBytes + bytes > this.#options.waitingBytes) throw overloaded();
    this.#waitingBytes += bytes;
    using abort = new LinkedAbort(signal);
    const stopListening = onAbort(this.#closing.signal, () => abort.abort(overloaded()));
    try {
      return await queue.acquire(owner, { signal: abort.signal });
    } catch (error) {
      throw error instanceof QueueRefusal ? overloaded() : error;
    } finally {
      stopListening();
      this.#waitingBytes -= bytes;
    }
  }

  #idle(group: ThreadGroup<Result>): Thread<Result> {
    for (const thread of group.threads) if (!thread.running) return thread;
    // The heap limit stops growth between two checks. The output of libraries is discarded: the streams are never read,
    // because reading them would keep the process alive.
    const worker = new Worker(this.#options.script, {
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(this.#options.memory / 1024 / 1024) },
      workerData: group.niceness,
      stdout: true,
      stderr: true,
    });
    const thread: Thread<Result> = { worker, group, peak: 0 };
    group.threads.add(thread);
    let cause: unknown;
    worker.on("message", (report: Report<Result>) => this.#receive(thread, report));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => this.#handleExit(thread, cause));
    return thread;
  }

  #begin(thread: Thread<Result>, { job, transfer }: Task<Job>): Running<Result> {
    const watch = setInterval(() => void this.#check(thread), WATCH_MS);
    const done = Promise.withResolvers<Result>();
    const times = { since: performance.now(), usedBefore: undefined, leftAt: Number.POSITIVE_INFINITY };
    const running = { done, part: undefined, ...times, isChecking: false, watch };
    thread.running = running;
    // A thread keeps the process alive only while a job runs.
    thread.worker.ref();
    thread.worker.postMessage(job, transfer);
    return running;
  }

  #receive(thread: Thread<Result>, report: Report<Result>): void {
    const { running } = thread;
    if (!running) return;
    if (report.kind === "progress") {
      running.part = report.part;
      running.since = performance.now();
      running.usedBefore = undefined;
      return;
    }
    thread.worker.unref();
    const done = this.#take(thread);
    if (report.kind === "done") done?.resolve(report.result);
    else done?.reject(new Failure(report.failure, report));
    // Replaces a thread after a large job, because an idle thread does not return its memory.
    if (thread.peak > this.#options.memory / 3) void this.#end(thread);
  }

  async #check(thread: Thread<Result>): Promise<void> {
    const { running } = thread;
    if (!running) return;
    const { milliseconds, memory, exceeded } = this.#options;
    const now = performance.now();
    if (now - running.since > PATIENCE * milliseconds || now - running.leftAt > LEFT_MS) {
      await this.#end(thread, overloaded());
      return;
    }
    if (running.isChecking) return;
    running.isChecking = true;
    const measured = await measure(thread.worker);
    running.isChecking = false;
    if (!measured || thread.running !== running) return;
    thread.peak = Math.max(thread.peak, measured.bytes);
    running.usedBefore ??= measured.usedMs;
    if (measured.usedMs - running.usedBefore > milliseconds) await this.#end(thread, exceeded("time", running.part));
    else if (measured.bytes > memory) await this.#end(thread, exceeded("memory", running.part));
  }

  /** Ends a thread and rejects its job with `error`. The next job starts another thread. */
  async #end(thread: Thread<Result>, error?: unknown): Promise<void> {
    thread.group.threads.delete(thread);
    this.#take(thread)?.reject(error);
    await thread.worker.terminate();
  }

  #handleExit(thread: Thread<Result>, cause: unknown): void {
    thread.group.threads.delete(thread);
    const part = thread.running?.part;
    const isMemory = cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY";
    const failure = () => (isMemory ? this.#options.exceeded("memory", part) : new Failure("internal", { cause }));
    this.#take(thread)?.reject(failure());
  }

  #take(thread: Thread<Result>): PromiseWithResolvers<Result> | undefined {
    const { running } = thread;
    delete thread.running;
    clearInterval(running?.watch);
    return running?.done;
  }
}

/** Memory and processor time of a thread; undefined while it starts or ends. */
async function measure(worker: Worker): Promise<{ bytes: number; usedMs: number } | undefined> {
  try {
    const [heap, { user, system }] = await Promise.all([worker.getHeapStatistics(), worker.cpuUsage()]);
    return { bytes: heap.used_heap_size + heap.external_memory, usedMs: (user + system) / 1_000 };
  } catch {
    return undefined;
  }
}

function overloaded(): Failure {
  return new Failure("overloaded");
}
