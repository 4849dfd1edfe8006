import type { Item, Lane } from "./exchange.ts";
import type { Share } from "./share.ts";

/** Wait before a failed exchange is repeated, in milliseconds. It doubles with each failure. */
const RESEND_MS = { first: 10, longest: 500 };

/** Largest number of items in one exchange, and of asks and posts from which it takes no further item. */
const MAX_ITEMS = 256;
const MAX_ROWS = 512;

/** Largest number of unhurried items in one exchange. Each takes about 0.6 ms, for which the requests wait. */
const MAX_UNHURRIED = 16;

/** The items of one lane: those in flight, and the shares that may have one. */
class LaneState {
  readonly lane: Lane;
  readonly flight: { share: Share; item: Item }[] = [];
  /** The last statement has failed. */
  isAway = false;
  resendMs = RESEND_MS.first;
  /** When the items in flight are sent again; undefined: their answer is awaited. */
  resendAt: number | undefined;
  /** Shares that may have something to send. */
  readonly ready = new Set<Share>();

  constructor(lane: Lane) {
    this.lane = lane;
  }
}

/**
 * Collects the items of shares into statements. Each lane has at most one in flight, so the end of an answer does not
 * wait for the requests of others that change grants. One that fails is sent again unchanged until it is answered,
 * because it may have been applied.
 */
export class Sender {
  /** Call-backs may be lost, so nothing is reserved in advance. */
  isDeaf = false;
  readonly #lanes = { append: new LaneState("append"), exchange: new LaneState("exchange") };
  #lastSeq = 0;

  /** Whether the last statement of a lane has failed. */
  get isAway(): boolean {
    return this.#lanes.append.isAway || this.#lanes.exchange.isAway;
  }

  /** When `next` can return something without another call, besides the return of idle headroom; undefined: never. */
  get wakeAt(): number | undefined {
    const { append, exchange } = this.#lanes;
    let at = Math.min(append.resendAt ?? Number.POSITIVE_INFINITY, exchange.resendAt ?? Number.POSITIVE_INFINITY);
    if (exchange.flight.length === 0)
      for (const { asks, flight } of exchange.ready)
        if (!flight) for (const { retryAt } of asks) at = Math.min(at, retryAt);
    return at === Number.POSITIVE_INFINITY ? undefined : at;
  }

  /** Notes that a share may have something to send. */
  add(share: Share): void {
    this.#lanes.append.ready.add(share);
    this.#lanes.exchange.ready.add(share);
  }

  remove(share: Share): void {
    this.#lanes.append.ready.delete(share);
    this.#lanes.exchange.ready.delete(share);
  }

  /** The items in flight were answered. @returns their shares, in their order */
  answered(lane: Lane): Share[] {
    const state = this.#lanes[lane];
    const shares = state.flight.splice(0).map(({ share }) => share);
    state.isAway = false;
    state.resendAt = undefined;
    state.resendMs = RESEND_MS.first;
    for (const share of shares) this.add(share);
    return shares;
  }

  /** The answer to the items in flight did not come. */
  failed(lane: Lane, now: number): void {
    const state = this.#lanes[lane];
    state.isAway = true;
    state.resendAt = now + state.resendMs;
    state.resendMs = Math.min(2 * state.resendMs, RESEND_MS.longest);
  }

  /**
   * Makes the statements that are due.
   * @param onSend gets the items of each
   * @param onIdle gets the shares that nothing is reserved for
   */
  next(now: number, onSend: (lane: Lane, items: Item[]) => void, onIdle: (share: Share) => void): void {
    for (const state of [this.#lanes.append, this.#lanes.exchange]) {
      if (state.flight.length > 0) {
        if (state.resendAt === undefined || now < state.resendAt) continue;
        state.resendAt = undefined;
      } else this.#collect(state, now, onIdle);
      if (state.flight.length > 0)
        onSend(
          state.lane,
          state.flight.map(({ item }) => item),
        );
    }
  }

  /** The item to send for a share: the one that was kept, or a new one; undefined: none in this lane. */
  #itemOf(share: Share, lane: Lane, now: number): Item | undefined {
    if (share.flight) return share.flight.item.lane === lane && share.pause.resume(now) ? share.flight.item : undefined;
    return share.laneOf(now, this.isDeaf) === lane ? share.send(lane, ++this.#lastSeq, now, this.isDeaf) : undefined;
  }

  #collect({ lane, flight, ready }: LaneState, now: number, onIdle: (share: Share) => void): void {
    let rows = 0;
    let unhurried = 0;
    const left: Share[] = [];
    for (const share of ready) {
      if (flight.length === MAX_ITEMS || rows >= MAX_ROWS) break;
      const { isUnhurried } = share;
      const mustWait = isUnhurried && unhurried === MAX_UNHURRIED && share.needsItem(now);
      const item = mustWait ? undefined : this.#itemOf(share, lane, now);
      if (item) {
        flight.push({ share, item });
        rows += item.asks.length + item.posts.length;
        if (isUnhurried) unhurried++;
      } else if (lane === "exchange" && share.isIdle(now)) onIdle(share);
      ready.delete(share);
      if (mustWait || (lane === "exchange" && share.asks.length > 0)) left.push(share);
    }
    // Behind those that were not reached. What waits for another reason is added again by an event or a tick.
    for (const share of left) ready.add(share);
  }
}
