import { type Ask, type Headroom, LIMITLESS, NOTHING, PARTS } from "./exchange.ts";

const OF_MINUTE = ["requests", "input", "output"] as const;
const COUNTED = ["running", ...OF_MINUTE] as const;

type Size = Pick<Headroom, "credit" | "input" | "output">;

/** Headroom of a grant that is reserved and not used. Requests and tokens end with the minute. */
export class Unused implements Headroom {
  credit = 0;
  running = 0;
  requests = 0;
  input = 0;
  /** Below 0 by what answers have exceeded it. The next item reports that, unless it is in flight already. */
  output = 0;
  /** Start of the minute, in ms since 1970. */
  minute = 0;
  #minuteEnds = Number.NEGATIVE_INFINITY;

  /** The amounts. */
  get parts(): Headroom {
    const { credit, running, requests, input, output } = this;
    return { credit, running, requests, input, output };
  }

  /** Whether there is what a request needs. */
  has({ hold, input }: Ask, now: number): boolean {
    this.endMinute(now);
    if (this.credit < hold || this.running < 1 || this.requests < 1) return false;
    return this.input >= input && this.output > 0;
  }

  /** Takes what a request needs, after `has`. */
  deduct(hold: number, input: number): void {
    this.credit -= hold;
    this.running -= 1;
    this.requests -= 1;
    this.input -= input;
  }

  /**
   * Adds what the database has reserved.
   * @param meanwhile what was admitted since it was asked for. It counts against a limit that is new.
   */
  add(extra: Headroom, meanwhile: Omit<Headroom, "credit">): void {
    for (const part of COUNTED) {
      if (this[part] < LIMITLESS) this[part] += extra[part];
      else this[part] = extra[part] - meanwhile[part];
    }
    this.credit += extra.credit;
  }

  /** @param ends when the minute ends, in ms of the monotonic clock */
  startMinute(minute: number, ends: number): void {
    this.minute = minute;
    this.#minuteEnds = ends;
  }

  /** The minute may be over. */
  expire(): void {
    this.#minuteEnds = Number.NEGATIVE_INFINITY;
  }

  /** Time to the end of the minute, in ms; below 0: it is over. */
  msLeft(now: number): number {
    return this.#minuteEnds - now;
  }

  isOver(now: number): boolean {
    return now >= this.#minuteEnds;
  }

  /** After the minute, requests and tokens need a new grant. */
  endMinute(now: number): void {
    if (!this.isOver(now)) return;
    for (const part of OF_MINUTE) if (this[part] < LIMITLESS) this[part] = Math.min(0, this[part]);
  }

  /** Number of requests of a size for which it suffices. */
  fits(size: Size): number {
    const of = (part: number, each: number): number => (each > 0 ? Math.floor(part / each) : LIMITLESS);
    const tokens = Math.min(of(this.input, size.input), of(this.output, size.output));
    return Math.min(of(this.credit, size.credit), this.running, this.requests, tokens);
  }

  keepNothing(): void {
    Object.assign(this, NOTHING);
  }

  /** Keeps at most what `n` requests of a size need. */
  keepAtMost(n: number, size: Size): void {
    const most: Headroom = { ...size, running: 1, requests: 1 };
    for (const part of PARTS) {
      // Below 0 when a limit is new. What runs is reported as held.
      if (this[part] < LIMITLESS) this[part] = Math.max(0, Math.min(this[part], n * most[part]));
    }
  }
}
