import { onAbort, type Signal } from "../../concurrency/abort.ts";

/** Resolves `reached` after `ms` milliseconds, or earlier: when the time is shortened or a signal aborts. */
export class Timeout implements Disposable {
  readonly reached: Promise<undefined>;
  readonly #resolve: () => void;
  readonly #stopListening: () => void;
  #timer: NodeJS.Timeout;
  #at: number;

  constructor(ms: number, signal: Signal | undefined) {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.reached = promise;
    this.#resolve = () => resolve(undefined);
    this.#stopListening = onAbort(signal, this.#resolve);
    this.#at = performance.now() + ms;
    this.#timer = setTimeout(this.#resolve, ms);
  }

  /** Moves the end to `ms` milliseconds from now if that is earlier. */
  shorten(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#at) return;
    this.#at = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#resolve, ms);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#stopListening();
  }
}
