import { LinkedAbort, type Signal } from "../concurrency/abort.ts";
import { TransientSet } from "../concurrency/transient.ts";
import { CallerGone, CutShort } from "../contract/endings.ts";
import { Failure } from "../contract/failure.ts";

/** A running request. Disposing it ends its registration. */
export interface Running extends Disposable {
  /** Aborts with CallerGone or CutShort as its reason. */
  readonly signal: Signal;
  /** `performance.now()` at which the answer must have ended; infinite without a limit. */
  readonly endsAt: number;
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

class Run implements Running {
  readonly link: LinkedAbort;
  endsAt = Number.POSITIVE_INFINITY;
  readonly #end: (link: LinkedAbort) => void;

  constructor(caller: Signal, end: (link: LinkedAbort) => void) {
    this.link = new LinkedAbort(caller, callerGone);
    this.#end = end;
  }

  get signal(): Signal {
    return this.link;
  }

  limit(deadlineMs: number): void {
    this.endsAt = performance.now() + deadlineMs;
    this.link.abortAfter(deadlineMs, cutAtDeadline);
  }

  [Symbol.dispose](): void {
    this.link.release();
    this.#end(this.link);
  }
}

function callerGone(): CallerGone {
  return new CallerGone();
}

function cutAtDeadline(): CutShort {
  return new CutShort("deadline");
}

/** Time for requests to end after they were cut short, in milliseconds. */
const CUT_MS = 1_000;

export function createInFlight(): InFlight {
  const running = new TransientSet<LinkedAbort>();
  let draining = false;
  let idle: (() => void) | undefined;
  const end = (link: LinkedAbort) => {
    running.delete(link);
    if (running.size === 0) idle?.();
  };

  return {
    get draining() {
      return draining;
    },
    get count() {
      return running.size;
    },
    begin(caller) {
      if (draining) throw new Failure("overloaded");
      const run = new Run(caller, end);
      running.add(run.link);
      return run;
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
