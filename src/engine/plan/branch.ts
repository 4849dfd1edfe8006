import { onAbort } from "../../abort.ts";

/** A promise that comes true at a time, which may be brought forward, or when a signal aborts. Disposing it stops the clock. */
export class Alarm implements Disposable {
  readonly rung: Promise<undefined>;
  readonly #ring: () => void;
  readonly #stopListening: () => void;
  #timer: NodeJS.Timeout;
  #at: number;

  constructor(ms: number, signal: AbortSignal | undefined) {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.rung = promise;
    this.#ring = () => resolve(undefined);
    this.#stopListening = onAbort(signal, this.#ring);
    this.#at = performance.now() + ms;
    this.#timer = setTimeout(this.#ring, ms);
  }

  /** Rings in `ms` from now, if that is sooner. */
  hasten(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#at) return;
    this.#at = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#ring, ms);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#stopListening();
  }
}
