import { extname } from "node:path";
import { WORKER_THREADS, WorkerPool, type WorkerPoolOptions, weightOf } from "../../concurrency/worker-pool.ts";
import { Failure } from "../../contract/failure.ts";
import type { ReadRequest } from "../../generate/read-request.ts";
import type { Decoded } from "../call/format.ts";
import type { LargeReader } from "../call/receive.ts";
import type { Job } from "./worker.ts";

const OPTIONS: WorkerPoolOptions = {
  threads: WORKER_THREADS,
  milliseconds: 20_000,
  memory: 512 * 1024 * 1024,
  waiting: 256,
  waitingBytes: 256 * 1024 * 1024,
  // The package of the service has JavaScript.
  script: new URL(`./worker${extname(import.meta.url)}`, import.meta.url),
  exceeded: (limit) =>
    new Failure("request_too_large", { message: `Reading the body takes too much ${limit}. Send a smaller one.` }),
};

/**
 * Creates the reader of bodies that are too large to decode on the event loop. Create one per process. The threads
 * start with the first large body.
 */
export function createLargeReader(): LargeReader & {
  /** Ends the threads. Bodies that are being read fail. */ close(): Promise<void>;
} {
  const pool = new WorkerPool<Job, Decoded<ReadRequest>>(OPTIONS);
  return {
    read(body, { owner, signal, ...rest }) {
      const bytes = body.size;
      const blocks = body.take();
      const transfer = blocks.map(({ buffer }) => buffer);
      return pool.run({ job: { blocks, ...rest }, transfer, bytes, weight: weightOf(bytes), signal, owner });
    },
    close: () => pool.close(),
  };
}
