/** Turns of the event loop in which all that waits starts, if more waits than the number for each turn allows. */
const MOST_TURNS = 32;

/**
 * Starts work in turns of the event loop, a few pieces in each, so that a burst does not delay other work by all of its
 * pieces. Keys with waiting work, such as workspaces, take turns. While more waits than can start in 32 turns, more
 * start in each, because turns are long when there is much other work, and the queue would grow.
 */
export class Turns<Key> {
  readonly #perTurn: number;
  /** What waits, of each key in the order of arrival. The first key is the next. */
  readonly #waiting = new Map<Key, Array<() => boolean>>();
  /** Pieces that wait. */
  #size = 0;
  /** Pieces that have started in this turn. */
  #started = 0;
  #isScheduled = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /**
   * Starts work at the end of this turn of the event loop or of a later one.
   * @param start returns whether there was still something to do; otherwise it does not count
   */
  add(key: Key, start: () => boolean): void {
    this.#size++;
    const those = this.#waiting.get(key);
    if (those) those.push(start);
    else this.#waiting.set(key, [start]);
    this.#schedule();
  }

  /** Asks to start work. @returns undefined: at once; otherwise a promise that resolves when it may start */
  enter(key: Key): Promise<void> | undefined {
    if (this.#waiting.size === 0 && this.#started < this.#perTurn) {
      this.#started++;
      this.#schedule();
      return undefined;
    }
    return new Promise((resolve) =>
      this.add(key, () => {
        resolve();
        return true;
      }),
    );
  }

  #schedule(): void {
    if (!this.#isScheduled) setImmediate(this.#turn);
    this.#isScheduled = true;
  }

  readonly #turn = (): void => {
    this.#started = 0;
    const most = Math.max(this.#perTurn, Math.ceil(this.#size / MOST_TURNS));
    for (const [key, those] of this.#waiting) {
      if (this.#started === most) break;
      this.#size--;
      this.#waiting.delete(key);
      const start = those.shift();
      // The loop comes to this key again after the others.
      if (those.length > 0) this.#waiting.set(key, those);
      if (start?.()) this.#started++;
    }
    this.#isScheduled = false;
    if (this.#waiting.size > 0 || this.#started > 0) this.#schedule();
  };
}
