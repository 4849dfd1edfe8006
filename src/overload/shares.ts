import { FairQueue, QueueRefusal } from "../concurrency/fair-queue.ts";
import { Failure } from "../contract/failure.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { ADMINISTRATION } from "./bounds.ts";

/** Shares the connections of administration and reports between workspaces. */
export interface Shares {
  /**
   * Runs work that has at most one statement at a time, as soon as its workspace may have one more connection.
   * @param key the workspace, or its owner
   * @throws Failure `overloaded` when too many wait, or the wait would be too long
   */
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Creates the shares of a process, within the bounds of `ADMINISTRATION`. */
export function createShares(telemetry: Pick<Telemetry, "requestShed">): Shares {
  const queue = new FairQueue({ capacity: ADMINISTRATION.connections, perFree: 1 });
  return {
    async run(key, work) {
      using _ = await queue
        .acquire(key, { deadline: performance.now() + ADMINISTRATION.maxWaitMs })
        .catch((error: unknown) => {
          if (!(error instanceof QueueRefusal)) throw error;
          telemetry.requestShed("administration");
          throw new Failure("overloaded", { retryAfterMs: error.retryAfterMs, cause: error });
        });
      return await work();
    },
  };
}
