/** What happens later, in the order of time. What was planned first for a time happens first. */
export class Timeline {
  readonly #entries: { at: number; run: () => void }[] = [];

  /** When the next entry is due. */
  get next(): number {
    return this.#entries[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  add(at: number, run: () => void): void {
    let place = this.#entries.length;
    while (place > 0 && (this.#entries[place - 1]?.at ?? 0) > at) place--;
    this.#entries.splice(place, 0, { at, run });
  }

  /** Runs what is due, also what is added meanwhile. */
  runUntil(now: number): void {
    for (let entry = this.#entries[0]; entry && entry.at <= now; entry = this.#entries[0]) {
      this.#entries.shift();
      entry.run();
    }
  }
}
