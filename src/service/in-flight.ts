import { LinkedAbort, type Signal } from "../abort.ts";
import { Failure } from "../failure.ts";
import { CallerGone, CutShort } from "./request-context.ts";

/** A running request. Disposing it ends its registration. */
export interface Running extends Disposable {
  /** Aborts with CallerGone or CutShort as its reason. */
  readonly signal: Signal;
  /** Aborts the request with CutShort after this many milliseconds. Call it at most once. */
  limit(deadlineMs: number): void;
}

/** Registers running requests, bounds their time and drains them at shutdown. */
export interface InFlight {
  /**
   * Registers a request until it is disposed. Its signal aborts when `caller` aborts.
   * @throws Failure overloaded once the service is draining.
   */
  begin(caller: Signal): Running;
  /**
   * Refuses new requests, lets running ones finish for `graceMs`, then cuts the rest short. Resolves when no request
   * runs, or one second after the cut, because a reader that has stalled keeps its request running. Call it again after
   * closing the connections to wait for those requests too.
   */
  drain(graceMs: number): Promise<void>;
  readonly draining: boolean;
  readonly count: number;
}

/** Time for requests to end after they were cut short, in milliseconds. */
const CUT_MS = 1_000;

export function createInFlight(): InFlight {
  const running = new Set<LinkedAbort>();
  let draining = false;
  let idle: (() => void) | undefined;

  return {
    get draining() {
      return draining;
    },
    get count() {
      return running.size;
    },
    begin(caller) {
      if (draining) throw new Failure("overloaded", { retryAfterMs: 1_000 });
      const link = new LinkedAbort(caller, () => new CallerGone());
      running.add(link);
      return {
        signal: link.signal,
        limit(deadlineMs) {
          link.abortAfter(deadlineMs, () => new CutShort("deadline"));
        },
        [Symbol.dispose]() {
          link.release();
          running.delete(link);
          if (running.size === 0) idle?.();
        },
      };
    },
    async drain(graceMs) {
      draining = true;
      if (running.size === 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      idle = resolve;
      const cut = setTimeout(() => {
        for (const link of running) link.abort(new CutShort("drain"));
      }, graceMs);
      const leave = setTimeout(resolve, graceMs + CUT_MS);
      await promise;
      clearTimeout(cut);
      clearTimeout(leave);
    },
  };
}
