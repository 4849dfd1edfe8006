import { TransientSet } from "../../concurrency/transient.ts";
import type { Item, Mode } from "./exchange.ts";
import type { Grant } from "./grant.ts";

/** Wait before a failed exchange is repeated, in milliseconds. It doubles with each failure. */
const RESEND_MS = { first: 10, longest: 500 };

/** Largest number of items in one exchange, and of asks and posts from which it takes no further item. */
const MAX_ITEMS = 256;
const MAX_ROWS = 512;

/** Largest number of unhurried items in one exchange. Each takes about 0.6 ms, for which the requests wait. */
const MAX_UNHURRIED = 16;

/** The items of one mode: those in flight, and the grants that may have one. */
class ModeState {
  readonly mode: Mode;
  readonly flight: { grant: Grant; item: Item }[] = [];
  /** The last statement has failed. */
  isAway = false;
  resendMs = RESEND_MS.first;
  /** When the items in flight are sent again; undefined: their answer is awaited. */
  resendAt: number | undefined;
  /** Shares that may have something to send. */
  readonly ready = new TransientSet<Grant>();

  constructor(mode: Mode) {
    this.mode = mode;
  }
}

/**
 * Collects the items of grants into statements. Each mode has at most one in flight, so the end of an answer does not
 * wait for the requests of others that change grants. One that fails is sent again unchanged until it is answered,
 * because it may have been applied.
 */
export class Sender {
  /** Call-backs may be lost, so nothing is reserved in advance. */
  isDeaf = false;
  readonly #modes = { append: new ModeState("append"), exchange: new ModeState("exchange") };
  #lastSeq = 0;

  /** Whether the last statement of a mode has failed. */
  get isAway(): boolean {
    return this.#modes.append.isAway || this.#modes.exchange.isAway;
  }

  /** When `next` can return something without another call, besides the return of idle headroom; undefined: never. */
  get wakeAt(): number | undefined {
    const { append, exchange } = this.#modes;
    let at = Math.min(append.resendAt ?? Number.POSITIVE_INFINITY, exchange.resendAt ?? Number.POSITIVE_INFINITY);
    if (exchange.flight.length === 0)
      for (const { asks, flight } of exchange.ready)
        if (!flight) for (const { retryAt } of asks) at = Math.min(at, retryAt);
    return at === Number.POSITIVE_INFINITY ? undefined : at;
  }

  /** Notes that a grant may have something to send. */
  add(grant: Grant): void {
    this.#modes.append.ready.add(grant);
    this.#modes.exchange.ready.add(grant);
  }

  /** Removes a grant that has ended, so that nothing is sent under it. */
  remove(grant: Grant): void {
    for (const { ready } of Object.values(this.#modes)) ready.delete(grant);
  }

  /** The items in flight were answered. @returns their grants, in their order */
  answered(mode: Mode): Grant[] {
    const state = this.#modes[mode];
    const grants = state.flight.splice(0).map(({ grant }) => grant);
    state.isAway = false;
    state.resendAt = undefined;
    state.resendMs = RESEND_MS.first;
    for (const grant of grants) this.add(grant);
    return grants;
  }

  /** The answer to the items in flight did not come. */
  failed(mode: Mode, now: number): void {
    const state = this.#modes[mode];
    state.isAway = true;
    state.resendAt = now + state.resendMs;
    state.resendMs = Math.min(2 * state.resendMs, RESEND_MS.longest);
  }

  /**
   * Makes the statements that are due.
   * @param onSend gets the items of each
   * @param onIdle gets the grants that nothing is reserved for
   */
  next(now: number, onSend: (mode: Mode, items: Item[]) => void, onIdle: (grant: Grant) => void): void {
    for (const state of [this.#modes.append, this.#modes.exchange]) {
      if (state.flight.length > 0) {
        if (state.resendAt === undefined || now < state.resendAt) continue;
        state.resendAt = undefined;
      } else this.#collect(state, now, onIdle);
      if (state.flight.length > 0)
        onSend(
          state.mode,
          state.flight.map(({ item }) => item),
        );
    }
  }

  /** How the next item of a grant, or the one that a pause has held back, is executed; undefined: there is none now. */
  #modeOf(grant: Grant, now: number): Mode | undefined {
    if (!grant.flight) return grant.modeOf(now, this.isDeaf);
    return grant.pause.isOn(now) ? undefined : grant.flight.item.mode;
  }

  #collect({ mode, flight, ready }: ModeState, now: number, onIdle: (grant: Grant) => void): void {
    let rows = 0;
    let unhurried = 0;
    const left: Grant[] = [];
    for (const grant of ready) {
      if (flight.length === MAX_ITEMS || rows >= MAX_ROWS) break;
      const { isUnhurried } = grant;
      const mustWait = isUnhurried && unhurried === MAX_UNHURRIED && grant.needsItem(now);
      const due = mustWait ? undefined : this.#modeOf(grant, now);
      if (due === mode) {
        const item = grant.flight?.item ?? grant.send(mode, ++this.#lastSeq, now, this.isDeaf);
        flight.push({ grant, item });
        rows += item.asks.length + item.posts.length;
        if (isUnhurried) unhurried++;
      } else if (due) {
        // Its mode may have changed since the other one has looked at it, with the time.
        this.#modes[due].ready.add(grant);
      } else if (mode === "exchange" && grant.isIdle(now)) onIdle(grant);
      ready.delete(grant);
      if (mustWait || grant.asks.length > 0) left.push(grant);
    }
    // Behind those that were not reached. What waits for another reason is added again by an event or a tick.
    for (const grant of left) ready.add(grant);
  }
}
