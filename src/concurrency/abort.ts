/**
 * Reason of an abort when the result is no longer needed. One shared instance, because creating an error with its stack
 * costs more than the abort.
 */
export const NOT_NEEDED = new DOMException("The result is no longer needed.", "AbortError");

const ONCE = { once: true } as const;

/** An object as a listener needs no closure for each signal. */
type Listener = (() => void) | { handleEvent(): void };

/** The part of AbortSignal that this code uses. A LinkedAbort is one too, and cheaper. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: Listener, options?: typeof ONCE): void;
  removeEventListener(type: "abort", listener: Listener): void;
}

/**
 * Calls `listener` when `signal` aborts, or at once if it has already aborted.
 * @returns a function that removes the listener; call it when the work ends, or a long-lived signal keeps the listener
 */
export function onAbort(signal: Signal | undefined, listener: () => void): () => void {
  if (!signal) return () => {};
  if (signal.aborted) listener();
  else signal.addEventListener("abort", listener, ONCE);
  return () => signal.removeEventListener("abort", listener);
}

/** Waits `ms` milliseconds. @throws the signal's reason when it aborts */
export async function pause(ms: number, signal: Signal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const stopListening = onAbort(signal, resolve);
  await promise;
  clearTimeout(timer);
  stopListening();
  signal.throwIfAborted();
}

/**
 * An abort signal that aborts with its parent, after a timeout, or on `abort()`, whichever comes first. Disposing it
 * aborts work that still runs under it; `release()` leaves that work alone. Either one removes the listener from the
 * parent and clears the timer. An AbortController takes eight times as long, and a request has several links
 * (docs/decisions/speed.md).
 */
export class LinkedAbort implements Signal, Disposable {
  aborted = false;
  reason: unknown;
  readonly #parent: Signal | undefined;
  readonly #mapReason: ((parent: Signal) => unknown) | undefined;
  /** Most signals have one listener, which needs no list. */
  #first: Listener | undefined;
  /** Later listeners, in their order. */
  #others: Listener[] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #released = false;

  /** @param reason gives the reason of the abort when the parent has aborted. Default: the parent's reason. */
  constructor(parent: Signal | undefined, reason?: (parent: Signal) => unknown) {
    this.#parent = parent;
    this.#mapReason = reason;
    if (parent?.aborted) this.handleEvent();
    else parent?.addEventListener("abort", this, ONCE);
  }

  /** This object, for those who may not abort it. */
  get signal(): Signal {
    return this;
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_: "abort", listener: Listener): void {
    if (this.aborted) return;
    if (this.#others) this.#others.push(listener);
    else if (this.#first) this.#others = [listener];
    else this.#first = listener;
  }

  removeEventListener(_: "abort", listener: Listener): void {
    if (this.#first === listener) {
      this.#first = undefined;
      return;
    }
    const at = this.#others?.indexOf(listener) ?? -1;
    if (at >= 0) this.#others?.splice(at, 1);
  }

  /** Aborts the signal, unless it has already aborted: the first reason stays. */
  abort(reason: unknown = NOT_NEEDED): void {
    this.release();
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    // A listener may remove those that follow.
    for (let next = this.#take(); next; next = this.#take()) {
      if (typeof next === "function") next();
      else next.handleEvent();
    }
  }

  #take(): Listener | undefined {
    const first = this.#first;
    this.#first = undefined;
    return first ?? this.#others?.shift();
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
    if (this.#released) return;
    this.#released = true;
    clearTimeout(this.#timer);
    this.#parent?.removeEventListener("abort", this);
  }

  [Symbol.dispose](): void {
    this.abort();
  }

  /** The parent has aborted. */
  handleEvent(): void {
    const parent = this.#parent;
    if (parent) this.abort(this.#mapReason ? this.#mapReason(parent) : parent.reason);
  }
}
