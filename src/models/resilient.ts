import { pause } from "../concurrency/abort.ts";
import { type Attempt, Breaker, type BreakerOptions } from "../concurrency/breaker.ts";
import { NO_PART } from "../concurrency/parts.ts";
import type { CallLimit, Slot } from "./call-limit.ts";
import type { ModelTimeouts } from "./port/entry.ts";
import type { Model, ModelCall, NextPiece, Pieces } from "./port/model.ts";
import { type CallRefusal, circuitOpen, ModelError, toModelError } from "./port/model-error.ts";
import { Retries, type RetryOptions } from "./retry.ts";
import { type CallEnd, Try } from "./try.ts";

export interface ResilientOptions extends RetryOptions {
  timeouts: ModelTimeouts;
  /** The circuit breaker, or the options of a new one. */
  breaker?: Breaker | BreakerOptions;
  /** Absent: any number of calls at a time. */
  limit?: CallLimit;
  /** Called for each call that was not sent. */
  onRefusal?: (refusal: CallRefusal) => void;
  /** Called after each try, failed ones included. */
  onEnd?: (end: CallEnd) => void;
}

/**
 * Adds timeouts, retries, a circuit breaker and a limit of calls at a time to a model.
 *
 * A model may be silent for `firstTokenMs` (or the call's `silenceMs`, if that is less) before its first text, and for
 * `betweenChunksMs` after it; where nothing is streamed, the first text may take 20 ms more for each token of the
 * ceiling. A call is retried only until its first text, and while the circuit is closed. When the caller aborts, the
 * vendor's call ends at once, the caller's reason is thrown, and the model is not blamed.
 * @throws ModelError; the reason of the caller's signal
 */
export function resilient(model: Model, options: ResilientOptions): Model {
  const breaker = options.breaker instanceof Breaker ? options.breaker : new Breaker(options.breaker);
  const shared: Shared = { model, options, breaker, last: undefined };
  return { name: model.name, ask: (call) => new ResilientCall(shared, call) };
}

/** What the calls of a model share. */
interface Shared {
  readonly model: Model;
  readonly options: ResilientOptions;
  readonly breaker: Breaker;
  /** The last failure that the model is blamed for. */
  last: { failure: ModelError; at: number } | undefined;
}

/** @throws ModelError while the circuit is open; the reason of the caller's signal */
function enter({ breaker, last }: Shared, { signal, requester = { workspace: "" }, isLastResort }: ModelCall): Attempt {
  signal.throwIfAborted();
  const attempt = breaker.begin(requester, isLastResort);
  if (attempt) return attempt;
  throw circuitOpen(breaker.failedShare, last?.failure, last ? performance.now() - last.at : 0);
}

/**
 * The pieces of a call, which is tried again until its first text. Without a generator, which takes 0.5 µs and three
 * promises for each piece.
 */
class ResilientCall implements Pieces {
  readonly #shared: Shared;
  readonly #call: ModelCall;
  readonly #silenceMs: number;
  /** Undefined before the first `next`. */
  #retries: Retries | undefined;
  #attempt: Attempt | undefined;
  #current: Try | undefined;
  /** The piece that is being read, until the first text. */
  #pending: Promise<NextPiece> | undefined;
  #isOver = false;

  constructor(shared: Shared, call: ModelCall) {
    this.#shared = shared;
    this.#call = call;
    this.#silenceMs = Math.min(call.silenceMs ?? Number.POSITIVE_INFINITY, shared.options.timeouts.firstTokenMs);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): NextPiece | Promise<NextPiece> {
    if (this.#current?.hasText) return this.#current.next();
    if (this.#isOver) return NO_PART;
    this.#pending = this.#advance();
    return this.#pending;
  }

  return(): NextPiece | Promise<NextPiece> {
    if (this.#pending) return this.#pending.then(this.#leave, this.#leave);
    return this.#leave();
  }

  readonly #leave = (): NextPiece | Promise<NextPiece> => {
    this.#isOver = true;
    const leaving = this.#current?.return();
    if (leaving instanceof Promise) return leaving.then(this.#left);
    return this.#left();
  };

  readonly #left = (): NextPiece => {
    // Only the first report counts.
    this.#attempt?.end("unknown");
    return NO_PART;
  };

  /** Reads a piece. Before the first text, a failure begins another try. */
  async #advance(): Promise<NextPiece> {
    try {
      this.#retries ??= new Retries(this.#shared.options, this.#silenceMs, this.#call.isReplaceable);
      this.#attempt ??= enter(this.#shared, this.#call);
      for (;;) {
        const beginning = this.#current ?? this.#begin(this.#attempt);
        const current = beginning instanceof Promise ? await beginning : beginning;
        this.#current = current;
        try {
          const reading = current.next();
          const next = reading instanceof Promise ? await reading : reading;
          if (next.done) await this.#leave();
          return next;
        } catch (error) {
          await this.#again(current, toModelError(error));
        }
      }
    } catch (error) {
      await this.#leave();
      if (error instanceof ModelError && error.refusal !== undefined) this.#shared.options.onRefusal?.(error.refusal);
      throw error;
    } finally {
      this.#pending = undefined;
    }
  }

  /** Begins a try, which may have to wait for a slot. */
  #begin(attempt: Attempt): Try | Promise<Try> {
    const { model, options } = this.#shared;
    const { timeouts, limit, onEnd } = options;
    const waits = { silenceMs: this.#silenceMs, betweenMs: timeouts.betweenChunksMs };
    const create = (slot: Slot | undefined) => new Try(model, this.#call, { ...waits, slot, attempt, onEnd });
    const entered = limit?.enter(this.#call, this.#silenceMs);
    return entered instanceof Promise ? entered.then(create) : create(entered);
  }

  /** Waits before another try. @throws what the caller gets, if there is none */
  async #again(failed: Try, failure: ModelError): Promise<void> {
    const { signal } = this.#call;
    if (failure.blamesModel && !signal.aborted) this.#shared.last = { failure, at: performance.now() };
    const isPossible = !signal.aborted && this.#shared.breaker.isClosed;
    const wait = isPossible ? this.#retries?.next(failure) : undefined;
    if (wait === undefined) throw failed.fail(failure);
    try {
      await pause(wait, signal);
    } catch {
      // The caller has aborted.
      throw failed.fail(failure);
    }
    this.#current = undefined;
  }
}
