/** Length of a pause in milliseconds. Each is twice as long as the one before. */
const PAUSE_MS = { first: 500, longest: 8_000 };

/** Pauses in which nothing is sent about a workspace, because another transaction locks it for long. */
export class Pause {
  /** The item in flight is kept, to be sent again. */
  #isParked = false;
  #until = Number.NEGATIVE_INFINITY;
  #nextMs = PAUSE_MS.first;

  isOn(now: number): boolean {
    return now < this.#until;
  }

  /** Begins a pause, in which the item in flight is kept. It may have been applied. */
  park(now: number): void {
    this.#isParked = true;
    this.#until = now + this.#nextMs;
    this.#nextMs = Math.min(2 * this.#nextMs, PAUSE_MS.longest);
  }

  /** @returns whether an item was kept and the pause is over. The item is then no longer kept. */
  resume(now: number): boolean {
    if (!this.#isParked || this.isOn(now)) return false;
    this.#isParked = false;
    return true;
  }

  /** The database has answered. */
  end(): void {
    this.#nextMs = PAUSE_MS.first;
  }
}
