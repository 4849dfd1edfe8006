import { LinkedAbort, type Signal } from "../concurrency/abort.ts";
import { ModelError } from "./port/model-error.ts";

/**
 * Aborts one call of a model when the caller aborts, or when the model sends nothing for `silenceMs` milliseconds.
 * The time that the reader takes for a part does not count.
 */
export class SilenceTimeout {
  /** Set when the model was silent for too long. */
  expired: ModelError | undefined;
  readonly #link: LinkedAbort;
  readonly #caller: Signal | undefined;
  #silenceMs: number;
  #timer: NodeJS.Timeout;
  /** Whether the reader works on a part, so the time does not count. */
  isPaused = false;

  constructor(caller: Signal | undefined, silenceMs: number) {
    this.#caller = caller;
    this.#silenceMs = silenceMs;
    this.#link = new LinkedAbort(caller);
    this.#timer = setTimeout(this.#expire, silenceMs);
  }

  get signal(): Signal {
    return this.#link.signal;
  }

  /** Outcome of a call that gave no complete answer. */
  get outcome(): "left" | "timed_out" | "failed" {
    return this.#caller?.aborted ? "left" : this.expired ? "timed_out" : "failed";
  }

  /** Stops counting while the reader works on a part. */
  pause(): void {
    this.isPaused = true;
  }

  /** Starts to count again from zero; from now on up to `silenceMs` if that is given. */
  restart(silenceMs = this.#silenceMs): void {
    this.isPaused = false;
    // `refresh` is cheaper than a new timer, and this runs for each part of a stream.
    if (silenceMs === this.#silenceMs) {
      this.#timer.refresh();
      return;
    }
    this.#silenceMs = silenceMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#expire, silenceMs);
  }

  /** Stops the timeout and the link to the caller; the call is not aborted. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#link.release();
  }

  /** Stops the timeout and aborts the call if it still runs. */
  abort(): void {
    clearTimeout(this.#timer);
    this.#link.abort();
  }

  readonly #expire = (): void => {
    if (this.isPaused) {
      this.#timer.refresh();
      return;
    }
    this.expired = new ModelError("The model was silent for too long.", {
      retryable: true,
      isCongestion: true,
      code: "timed_out",
    });
    this.#link.abort(this.expired);
  };
}
