import { FairQueue, QueueRefusal } from "../concurrency/fair-queue.ts";
import { Failure } from "../contract/failure.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { ADMINISTRATION } from "./bounds.ts";

export type Shares = ReturnType<typeof createShares>;

/** Shares the connections of administration and reports between workspaces, within the bounds of `ADMINISTRATION`. */
export function createShares(telemetry: Pick<Telemetry, "requestShed">) {
  const queue = new FairQueue({ capacity: ADMINISTRATION.connections, perFree: 1 });
  return {
    /**
     * Runs work that has at most one statement at a time, as soon as its workspace may have one more connection.
     * @param key the workspace, or its owner
     * @throws Failure `overloaded` when too many wait, or the wait would be too long
     */
    async run<T>(key: string, work: () => Promise<T>): Promise<T> {
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
