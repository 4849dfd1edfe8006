/** Length of a pause in milliseconds. Each is twice as long as the one before. */
const PAUSE_MS = { first: 500, longest: 8_000 };

/** Pauses in which nothing is sent about a workspace, because another transaction locks it for long. */
export class Pause {
  #until = Number.NEGATIVE_INFINITY;
  #nextMs = PAUSE_MS.first;

  isOn(now: number): boolean {
    return now < this.#until;
  }

  /** Begins a pause, after which the item in flight is sent again. It may have been applied. */
  begin(now: number): void {
    this.#until = now + this.#nextMs;
    this.#nextMs = Math.min(2 * this.#nextMs, PAUSE_MS.longest);
  }

  /** The database has answered. */
  end(): void {
    this.#nextMs = PAUSE_MS.first;
  }
}
