import { extname } from "node:path";
import type { Signal } from "../../concurrency/abort.ts";
import { WORKER_THREADS, WorkerPool, type WorkerPoolOptions, weightOf } from "../../concurrency/worker-pool.ts";
import { Failure } from "../../contract/failure.ts";
import type { Blocks } from "./blocks.ts";
import type { Job, Result } from "./request-worker.ts";

interface Source extends Omit<Job, "blocks"> {
  /** The workspace of the request. */
  readonly owner: string;
  /** Aborts when the caller leaves. */
  readonly signal: Signal;
}

/** Reads requests whose bodies are too large to decode on the event loop. */
export interface RequestReader {
  /**
   * Decodes, checks and counts a request in a worker thread. The body moves there.
   * @throws Failure; `overloaded` while too many bodies wait and after `close`; the reason of the signal
   */
  read(body: Blocks, source: Source): Promise<Result>;
  /** Ends the threads. Bodies that are being read fail. */
  close(): Promise<void>;
}

/** Largest body that is read on the event loop, in bytes. In the worst case its text takes 13 ms to count. */
export const MAX_INLINE = 16 * 1024;

const OPTIONS: WorkerPoolOptions = {
  threads: WORKER_THREADS,
  milliseconds: 20_000,
  memory: 512 * 1024 * 1024,
  waiting: 256,
  waitingBytes: 256 * 1024 * 1024,
  // The package of the service has JavaScript.
  script: new URL(`./request-worker${extname(import.meta.url)}`, import.meta.url),
  exceeded: (limit) =>
    new Failure("request_too_large", { message: `Reading the body takes too much ${limit}. Send a smaller one.` }),
};

/** Create one per process. The threads start with the first large body. */
export function createRequestReader(): RequestReader {
  const pool = new WorkerPool<Job, Result>(OPTIONS);
  return {
    read(body, { owner, signal, ...form }) {
      const bytes = body.size;
      const blocks = body.take();
      const transfer = blocks.map(({ buffer }) => buffer);
      return pool.run({ job: { blocks, ...form }, transfer, bytes, weight: weightOf(bytes), signal, owner });
    },
    close: () => pool.close(),
  };
}
