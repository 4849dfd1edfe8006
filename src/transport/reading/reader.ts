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

/** Reads bodies in threads. */
export interface ThreadReader extends LargeReader {
  /** Starts a thread for bodies up to 64 KB, and one for those up to 1 MB. Without it they start with the first one. */
  warmUp(): void;
  /** Ends the threads. Bodies that are being read fail. */
  close(): Promise<void>;
}

/** Creates the reader of bodies that are too large to decode on the event loop. Create one per process. */
export function createLargeReader(): ThreadReader {
  const pool = new WorkerPool<Job, Decoded<ReadRequest>>(OPTIONS);
  return {
    read(body, { owner, signal, ...rest }) {
      const bytes = body.size;
      const blocks = body.take();
      const transfer = blocks.map(({ buffer }) => buffer);
      return pool.run({ job: { blocks, ...rest }, transfer, bytes, weight: weightOf(bytes), signal, owner });
    },
    warmUp() {
      pool.start("light");
      pool.start("medium");
    },
    close: () => pool.close(),
  };
}
