import { LinkedAbort } from "../abort.ts";
import { Failure } from "../failure.ts";
import { CallerGone, CutShort } from "./request-context.ts";

/** One request that runs; disposing it takes it off the books. */
export interface Running extends Disposable {
  /** Aborts with CallerGone or CutShort as its reason. */
  readonly signal: AbortSignal;
  /** Cuts the request short this many milliseconds from now. To be called once at most. */
  limit(deadlineMs: number): void;
}

/** The requests that run now, and the end of them. */
export interface InFlight {
  /**
   * Puts a request on the books, until it is disposed. It ends when `caller` aborts.
   * @throws Failure overloaded once the service is draining.
   */
  begin(caller: AbortSignal): Running;
  /**
   * Refuses new requests, lets what runs finish for `graceMs`, then cuts the rest short. Resolves when nothing runs any more, or a
   * second after the cut: a reader that takes nothing holds its request for longer. May be called again, to wait for those as well
   * once their connections have been ended.
   */
  drain(graceMs: number): Promise<void>;
  readonly draining: boolean;
  readonly count: number;
}

/** Time that requests get to end once they were cut short, in milliseconds. */
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
