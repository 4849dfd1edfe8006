import type { Item } from "./exchange.ts";
import type { Share } from "./share.ts";

/** Wait before an exchange is repeated that has failed, in milliseconds. It doubles with each failure. */
const RESEND_MS = { first: 10, longest: 500 };

/** Largest number of items in one exchange, and of asks and posts from which it takes no further item. */
const MAX_ITEMS = 256;
const MAX_ROWS = 512;

/** Largest number of unhurried items in one exchange. Each takes about 0.6 ms, for which the requests wait. */
const MAX_UNHURRIED = 16;

/**
 * Collects the items of shares into exchanges. At most one is in flight. One that fails is sent again unchanged until
 * it is answered, because it may have been applied.
 */
export class Sender {
  /** The last exchange has failed. */
  isAway = false;
  /** Call-backs may be lost, so nothing is reserved in advance. */
  isDeaf = false;
  #flight: { share: Share; item: Item }[] = [];
  #resendMs = RESEND_MS.first;
  /** When the exchange in flight is sent again; undefined: its answer is awaited. */
  #resendAt: number | undefined;
  #lastSeq = 0;
  /** Shares that may have something to send. */
  readonly #ready = new Set<Share>();

  /** When `next` can return something without another call, besides the return of idle headroom; undefined: never. */
  get wakeAt(): number | undefined {
    if (this.#flight.length > 0) return this.#resendAt;
    const times = [...this.#ready].flatMap(({ asks }) => asks.map(({ retryAt }) => retryAt));
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  /** Notes that a share may have something to send. */
  add(share: Share): void {
    this.#ready.add(share);
  }

  remove(share: Share): void {
    this.#ready.delete(share);
  }

  /** The exchange in flight was answered. @returns the shares of its items, in their order */
  answered(): Share[] {
    const shares = this.#flight.map(({ share }) => share);
    this.#flight = [];
    this.isAway = false;
    this.#resendMs = RESEND_MS.first;
    for (const share of shares) this.add(share);
    return shares;
  }

  /** The answer to the exchange in flight did not come. */
  failed(now: number): void {
    this.isAway = true;
    this.#resendAt = now + this.#resendMs;
    this.#resendMs = Math.min(2 * this.#resendMs, RESEND_MS.longest);
  }

  /**
   * Makes the exchange that is due; undefined: none.
   * @param onIdle gets the shares that nothing is reserved for
   */
  next(now: number, onIdle: (share: Share) => void): Item[] | undefined {
    if (this.#flight.length > 0) {
      if (this.#resendAt === undefined || now < this.#resendAt) return undefined;
      this.#resendAt = undefined;
    } else this.#collect(now, onIdle);
    return this.#flight.length > 0 ? this.#flight.map(({ item }) => item) : undefined;
  }

  /** The item to send for a share: the one that was kept, or a new one; undefined: none. */
  #itemOf(share: Share, now: number): Item | undefined {
    if (share.pause.resume(now)) return share.flight?.item;
    return share.needsItem(now) ? share.send(++this.#lastSeq, now, this.isDeaf) : undefined;
  }

  #collect(now: number, onIdle: (share: Share) => void): void {
    let rows = 0;
    let unhurried = 0;
    const left: Share[] = [];
    for (const share of this.#ready) {
      if (this.#flight.length === MAX_ITEMS || rows >= MAX_ROWS) break;
      const { isUnhurried } = share;
      const mustWait = isUnhurried && unhurried === MAX_UNHURRIED && share.needsItem(now);
      const item = mustWait ? undefined : this.#itemOf(share, now);
      if (item) {
        this.#flight.push({ share, item });
        rows += item.asks.length + item.posts.length;
        if (isUnhurried) unhurried++;
      } else if (share.isIdle(now)) onIdle(share);
      this.#ready.delete(share);
      if (mustWait || share.isAwaited) left.push(share);
    }
    // Behind those that were not reached.
    for (const share of left) this.#ready.add(share);
  }
}
