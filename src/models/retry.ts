import type { ModelError } from "./port/model-error.ts";

export interface RetryOptions {
  /** Retries after the first try. Default 2. */
  retries?: number;
  /** Upper bound of the first random wait, in milliseconds; it doubles with each further retry. Default 250. */
  backoffMs?: number;
  /**
   * Longest wait before a retry, in milliseconds. A vendor that asks for a longer one is not retried. Default 5,000.
   */
  maxWaitMs?: number;
  /** From 0 up to 1. Default `Math.random`. */
  random?: () => number;
}

/** Longest wait before a retry, in milliseconds, and that of a call that another model can take over. */
const MAX_WAIT_MS = { last: 5_000, replaceable: 1_000 };

/** The wait, in milliseconds, after which a call is repeated only if no other model takes it over; else undefined. */
export function deferredMs({ retryable, kind, retryAfterMs = 0 }: ModelError): number | undefined {
  const isDeferred = retryable && kind === undefined && retryAfterMs >= MAX_WAIT_MS.replaceable;
  return isDeferred && retryAfterMs <= MAX_WAIT_MS.last ? retryAfterMs : undefined;
}

/**
 * Decides whether and when a failed call of one model is retried. `ModelError.retryable` says which failures can be:
 * status 429 and 5xx, timeouts and broken connections. The wait is the one that the vendor asked for (`Retry-After`),
 * otherwise exponential backoff with full jitter. No retry starts later than `windowMs` after the first try, so that
 * the next model of a failover still has time. Where there are other models, no wait is longer than a second.
 */
export class Retries {
  readonly #options: RetryOptions;
  readonly #maxWaitMs: number;
  readonly #endsAt: number;
  #failed = 0;

  /** @param isReplaceable whether another model is asked if this one fails */
  constructor(options: RetryOptions, windowMs: number, isReplaceable = false) {
    this.#options = options;
    const { maxWaitMs = MAX_WAIT_MS.last } = options;
    this.#maxWaitMs = isReplaceable ? Math.min(maxWaitMs, MAX_WAIT_MS.replaceable) : maxWaitMs;
    this.#endsAt = performance.now() + windowMs;
  }

  /**
   * Counts a failure.
   * @returns the wait before the retry, in milliseconds; undefined when the call is not retried
   */
  next({ retryable, retryAfterMs }: ModelError): number | undefined {
    const { retries = 2, backoffMs = 250, random = Math.random } = this.#options;
    const wait = retryAfterMs ?? random() * Math.min(this.#maxWaitMs, backoffMs * 2 ** this.#failed);
    this.#failed++;
    const isPossible = retryable && this.#failed <= retries && wait <= this.#maxWaitMs;
    return isPossible && performance.now() + wait <= this.#endsAt ? wait : undefined;
  }
}
