import { LinkedAbort, type Signal } from "../concurrency/abort.ts";
import { TransientSet } from "../concurrency/transient.ts";
import { CallerGone, CutShort } from "../contract/endings.ts";
import { Failure } from "../contract/failure.ts";

/** A running request. Disposing it ends its registration. */
export class Running implements Disposable {
  /** `performance.now()` at which the answer must have ended; infinite without a limit. */
  endsAt = Number.POSITIVE_INFINITY;
  readonly #link: LinkedAbort;
  readonly #end: (running: Running) => void;

  constructor(caller: Signal, end: (running: Running) => void) {
    this.#link = new LinkedAbort(caller, callerGone);
    this.#end = end;
  }

  /** Aborts with CallerGone or CutShort as its reason. */
  get signal(): Signal {
    return this.#link;
  }

  /** Aborts the request with CutShort after this many milliseconds. Call it at most once. */
  limit(deadlineMs: number): void {
    this.endsAt = performance.now() + deadlineMs;
    this.#link.abortAfter(deadlineMs, cutAtDeadline);
  }

  /** Aborts the request, because the service drains. */
  cut(): void {
    this.#link.abort(new CutShort("drain"));
  }

  [Symbol.dispose](): void {
    this.#link.release();
    this.#end(this);
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

/** Registers running requests, bounds their time and drains them at shutdown. */
export class InFlight {
  readonly #running = new TransientSet<Running>();
  #isDraining = false;
  #onIdle: (() => void) | undefined;

  get draining(): boolean {
    return this.#isDraining;
  }

  get count(): number {
    return this.#running.size;
  }

  /**
   * Registers a request until it is disposed. Its signal aborts when `caller` aborts.
   * @throws Failure overloaded once the service is draining.
   */
  begin(caller: Signal): Running {
    if (this.#isDraining) throw new Failure("overloaded");
    const running = new Running(caller, this.#end);
    this.#running.add(running);
    return running;
  }

  /**
   * Refuses new requests, lets running ones finish for `graceMs`, then cuts the rest short. Resolves when no request
   * runs, or one second after the cut, because a reader that has stalled keeps its request running. Call it again after
   * closing the connections to wait for those requests too.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    if (this.count === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    const cut = setTimeout(() => {
      for (const running of this.#running) running.cut();
    }, graceMs);
    const leave = setTimeout(resolve, graceMs + CUT_MS);
    await promise;
    clearTimeout(cut);
    clearTimeout(leave);
  }

  readonly #end = (running: Running): void => {
    this.#running.delete(running);
    if (this.count === 0) this.#onIdle?.();
  };
}
