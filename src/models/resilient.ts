import { pause, type Signal } from "../concurrency/abort.ts";
import { type Attempt, Breaker, type BreakerOptions } from "../concurrency/breaker.ts";
import type { CallLimit } from "./call-limit.ts";
import { HandOver } from "./hand-over.ts";
import type { ModelTimeouts } from "./port/entry.ts";
import type { Model, ModelCall, Piece, Pieces } from "./port/model.ts";
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
  const { timeouts, limit, onEnd, onRefusal } = options;
  const breaker = options.breaker instanceof Breaker ? options.breaker : new Breaker(options.breaker);
  let last: { failure: ModelError; at: number } | undefined;

  /** @throws ModelError while the circuit is open; the reason of the caller's signal */
  function enter({ signal, requester = { workspace: "" }, isLastResort }: ModelCall): Attempt {
    signal.throwIfAborted();
    const attempt = breaker.begin(requester, isLastResort);
    if (attempt) return attempt;
    throw circuitOpen(breaker.failedShare, last?.failure, last ? performance.now() - last.at : 0);
  }

  async function* begin(call: ModelCall): AsyncGenerator<Piece, Pieces | undefined, undefined> {
    const silenceMs = Math.min(call.silenceMs ?? Number.POSITIVE_INFINITY, timeouts.firstTokenMs);
    const retries = new Retries(options, silenceMs);
    const attempt = enter(call);
    let current: Try | undefined;
    let isHandedOver = false;
    try {
      for (;;) {
        const entered = limit?.enter(call, silenceMs);
        const slot = entered instanceof Promise ? await entered : entered;
        current = new Try(model, call, { silenceMs, betweenMs: timeouts.betweenChunksMs, slot, attempt, onEnd });
        try {
          for (let next = await current.next(); !next.done; next = await current.next()) {
            yield next.value;
            if (!current.hasText) continue;
            isHandedOver = true;
            return current;
          }
          return undefined;
        } catch (error) {
          const failure = toModelError(error);
          if (failure.blamesModel && !call.signal.aborted) last = { failure, at: performance.now() };
          const wait = call.signal.aborted || !breaker.isClosed ? undefined : retries.next(failure);
          if (wait === undefined || !(await hasWaited(wait, call.signal))) throw current.fail(failure);
        }
      }
    } catch (error) {
      if (error instanceof ModelError && error.refusal !== undefined) onRefusal?.(error.refusal);
      throw error;
    } finally {
      if (!isHandedOver) {
        await current?.return();
        attempt.end("unknown");
      }
    }
  }

  return { name: model.name, ask: (call) => new HandOver(begin(call)) };
}

/** Waits before a retry. @returns false if the caller aborts */
async function hasWaited(ms: number, signal: Signal): Promise<boolean> {
  try {
    await pause(ms, signal);
    return true;
  } catch {
    return false;
  }
}
