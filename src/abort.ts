/**
 * Reason of an abort when the result is no longer needed. One shared instance, because creating an error with its stack
 * costs more than the abort.
 */
export const NOT_NEEDED = new DOMException("The result is no longer needed.", "AbortError");

const ONCE = { once: true } as const;

/**
 * Calls `listener` when `signal` aborts, or at once if it has already aborted.
 * @returns a function that removes the listener; call it when the work ends, or a long-lived signal keeps the listener
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => {};
  if (signal.aborted) listener();
  else signal.addEventListener("abort", listener, ONCE);
  return () => signal.removeEventListener("abort", listener);
}

/**
 * An abort signal that aborts with its parent, after a timeout, or on `abort()`, whichever comes first. Disposing it aborts
 * work that still runs under it; `release()` leaves that work alone. Either one removes the listener from the parent and
 * clears the timer. It is cheaper than `AbortSignal.any`, which a long-lived parent also keeps in a list.
 */
export class LinkedAbort implements Disposable {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #reason: ((parent: AbortSignal) => unknown) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #released = false;

  /** @param reason gives the reason of the abort when the parent has aborted. Default: the parent's reason. */
  constructor(parent: AbortSignal | undefined, reason?: (parent: AbortSignal) => unknown) {
    this.#parent = parent;
    this.#reason = reason;
    if (parent?.aborted) this.#follow();
    else parent?.addEventListener("abort", this.#follow, ONCE);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts the signal, unless it has already aborted: the first reason stays. */
  abort(reason: unknown = NOT_NEEDED): void {
    this.release();
    this.#controller.abort(reason);
  }

  /**
   * Aborts the signal after `ms` milliseconds. A second call replaces the first timeout; after an abort or a release it
   * has no effect.
   * @param reason gives the reason of the abort when the time is up. Default: `NOT_NEEDED`.
   */
  abortAfter(ms: number, reason?: () => unknown): void {
    clearTimeout(this.#timer);
    if (this.#released) return;
    this.#timer = setTimeout(() => this.abort(reason?.()), ms);
  }

  /** Ends the link to the parent and the timeout. The signal aborts only on `abort()` from now on. */
  release(): void {
    this.#released = true;
    clearTimeout(this.#timer);
    this.#parent?.removeEventListener("abort", this.#follow);
  }

  [Symbol.dispose](): void {
    this.abort();
  }

  readonly #follow = (): void => {
    const parent = this.#parent;
    if (parent) this.abort(this.#reason ? this.#reason(parent) : parent.reason);
  };
}
