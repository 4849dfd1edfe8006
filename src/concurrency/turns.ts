import { TransientMap } from "./transient.ts";

/** If more work waits than the number for each turn allows, all of it starts within this many turns. */
const MOST_TURNS = 32;
/** Time that the work of a turn may take where its number adapts, in milliseconds. */
const TURN_MS = 2;
/** Weight of the latest turn in the mean time of a piece. */
const LATEST = 0.1;

/** Longest time for which work waits while connections are accepted, in ms. About 200 are accepted in this time. */
const ACCEPTING_MS = 10;

/** Connections that the process has accepted. */
let accepted = 0;

/**
 * Notes that a connection has been accepted. Node accepts one in each turn of the event loop, in the order of their
 * arrival. So that a new connection does not wait for all work of those before it, other work waits in such turns.
 */
export function noteAccepted(): void {
  accepted++;
}

/** What waits of one key, in the order of arrival. */
interface Lane<Key> {
  readonly key: Key;
  readonly waiting: Array<() => boolean>;
}

/**
 * Starts work in turns of the event loop, a few pieces in each, so that a burst does not delay other work by all of its
 * pieces. Keys with waiting work, such as workspaces, take turns. While more waits than can start in 32 turns, more
 * start in each, because turns are long when there is much other work, and the queue would grow.
 *
 * The number for each turn can adapt to the time that the pieces take. As many as possible should start together:
 * pieces of the same kind that run one after the other find their code in the processor's cache. 64 in place of 8
 * requests in a turn take 132 µs each in place of 155.
 */
export class Turns<Key> {
  readonly #least: number;
  readonly #most: number;
  #perTurn: number;
  /** Mean time of a piece, in milliseconds. */
  #pieceMs: number;
  readonly #lanes = new TransientMap<Key, Lane<Key>>();
  /** The lanes in their order: those of this round from `#at` on, and then those of the next one. */
  #round: Array<Lane<Key>> = [];
  #at = 0;
  #next: Array<Lane<Key>> = [];
  /** Pieces that wait. */
  #size = 0;
  /** Pieces that have started in this turn. */
  #started = 0;
  /** Pieces that the latest turn has started. */
  #begun = 0;
  #isScheduled = false;
  /** Connections that had been accepted at the last turn. */
  #accepted = accepted;
  /** When work last started, by `performance.now()`. */
  #startedAt = 0;

  /**
   * @param least pieces that start in each turn
   * @param most pieces that start in a turn if they take no longer than 2 ms together
   */
  constructor(least: number, most = least) {
    this.#least = least;
    this.#most = most;
    this.#perTurn = least;
    this.#pieceMs = TURN_MS / least;
  }

  /**
   * Starts work at the end of this turn of the event loop or of a later one.
   * @param start returns whether there was still something to do; otherwise it does not count
   */
  add(key: Key, start: () => boolean): void {
    this.#size++;
    const lane = this.#lanes.get(key);
    if (lane) lane.waiting.push(start);
    else {
      const added = { key, waiting: [start] };
      this.#lanes.set(key, added);
      this.#next.push(added);
    }
    this.#schedule();
  }

  /** Asks to start work. @returns undefined: at once; otherwise a promise that resolves when it may start */
  enter(key: Key): Promise<void> | undefined {
    if (this.#size === 0 && this.#started < this.#perTurn && this.#accepted === accepted) {
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

  /** Runs work at once or in a later turn. */
  run(key: Key, work: () => void): void {
    const turn = this.enter(key);
    if (turn) void turn.then(work);
    else work();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#turn);
    // Runs after the promises that the turn has resolved.
    if (this.#most > this.#least) setImmediate(this.#adapt);
  }

  readonly #adapt = (): void => {
    if (this.#begun === 0) return;
    const pieceMs = (performance.now() - this.#startedAt) / this.#begun;
    this.#pieceMs += LATEST * (pieceMs - this.#pieceMs);
    this.#perTurn = Math.max(this.#least, Math.min(this.#most, Math.round(TURN_MS / this.#pieceMs)));
  };

  readonly #turn = (): void => {
    this.#isScheduled = false;
    this.#started = 0;
    const now = performance.now();
    if (this.#accepted === accepted || now - this.#startedAt >= ACCEPTING_MS) {
      this.#startedAt = now;
      this.#startSome();
    }
    this.#accepted = accepted;
    this.#begun = this.#started;
    if (this.#size > 0 || this.#started > 0) this.#schedule();
  };

  #startSome(): void {
    const most = Math.max(this.#perTurn, Math.ceil(this.#size / MOST_TURNS));
    while (this.#started < most) {
      const lane = this.#nextLane();
      if (!lane) break;
      this.#size--;
      const start = lane.waiting.shift();
      if (lane.waiting.length > 0) this.#next.push(lane);
      else this.#lanes.delete(lane.key);
      if (start?.()) this.#started++;
    }
  }

  /** Takes the first lane. Those that were taken stay in the array until their round ends. */
  #nextLane(): Lane<Key> | undefined {
    if (this.#at === this.#round.length) {
      this.#round.length = this.#at = 0;
      [this.#round, this.#next] = [this.#next, this.#round];
    }
    const lane = this.#round[this.#at];
    if (lane) this.#at++;
    return lane;
  }
}
