import { FairQueue, QueueRefusal } from "../../concurrency/fair-queue.ts";
import { Failure } from "../../contract/failure.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { Actor } from "./audit.ts";

/** Shares the connections of administration and reports between workspaces. */
export interface Shares {
  /**
   * Runs work that has at most one statement at a time, as soon as its workspace may have one more connection.
   * @param key the workspace, or its owner
   * @throws Failure `overloaded` when too many wait, or the wait would be too long
   */
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/**
 * Connections for callers and owners together, of the ten for administration. A workspace alone has two. The others are
 * left for operators, look-ups of tokens and sessions, and maintenance.
 */
const CONNECTIONS = 4;

/** Longest wait, in milliseconds. */
const MAX_WAIT_MS = 5_000;

export function createShares(telemetry: Pick<Telemetry, "requestShed">): Shares {
  const queue = new FairQueue({ capacity: CONNECTIONS, perFree: 1 });
  return {
    async run(key, work) {
      using _ = await queue.acquire(key, { deadline: performance.now() + MAX_WAIT_MS }).catch((error: unknown) => {
        if (!(error instanceof QueueRefusal)) throw error;
        telemetry.requestShed("administration");
        throw new Failure("overloaded", { retryAfterMs: error.retryAfterMs, cause: error });
      });
      return await work();
    },
  };
}

/** Runs work of an owner with the owner's share. An operator needs none. */
export function runAs<T>(shares: Shares, actor: Actor, work: () => Promise<T>): Promise<T> {
  // A key of its own, because callers must not use up the share of their owner.
  return actor.kind === "owner" ? shares.run(`owner of ${actor.workspaceId}`, work) : work();
}

/**
 * The same methods, which owners call with their share.
 * @param prepare runs before each call. It gets the workspace of an owner; undefined: an operator calls
 */
export function shared<A extends Record<string, (request: never, actor: Actor) => Promise<unknown>>>(
  shares: Shares,
  admin: A,
  prepare?: (workspaceId: string | undefined) => Promise<void>,
): A {
  const methods = Object.entries(admin).map(([name, method]) => [
    name,
    (request: never, actor: Actor) =>
      runAs(shares, actor, async () => {
        await prepare?.(actor.kind === "owner" ? actor.workspaceId : undefined);
        return method(request, actor);
      }),
  ]);
  return Object.fromEntries(methods);
}
