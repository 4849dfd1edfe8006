/** Length of a part of the time that is observed, in milliseconds. */
const PART_MS = 1_000;

/** Time without a request after which unused headroom is returned, in milliseconds. */
const IDLE_MS = 2_000;

/** Longest time between two requests of a workspace that is used now and then, in milliseconds. */
const MAX_GAP_MS = 10_000;

/** Unused headroom of a workspace that is used now and then is returned after this number of gaps. */
const GAPS = 3;

/** Factor by which each further request shortens the longest gap. */
const FADING = 0.7;

/** Fewest requests in the last seconds for which headroom is taken in advance. */
const FEW = 2;

/**
 * A workspace that is used now and then reserves headroom for the requests of this time, in milliseconds, and for at
 * most this many. Headroom of requests ends with the minute. It is taken again when a quarter is left, so not before.
 */
const AHEAD_MS = 80_000;
const MANY = 16;

/** What the next requests need: those of one to two seconds, or of a minute if the workspace is used now and then. */
export interface Demand {
  n: number;
  /** Means for one request, rounded up. `output` is at least 1. */
  credit: number;
  input: number;
  output: number;
  /** The workspace is used now and then, so requests are seconds apart. */
  isSlow: boolean;
}

interface Part {
  requests: number;
  credit: number;
  input: number;
  ends: number;
  output: number;
}

const EMPTY: Readonly<Part> = { requests: 0, credit: 0, input: 0, ends: 0, output: 0 };

/** Observes the requests of one workspace on one replica. Times are in ms of a monotonic clock. */
export class DemandMeter {
  admittedAt: number;
  /** Longest time between the last requests, up to MAX_GAP_MS; 0: there was one request. */
  #gap = 0;
  #part = 0;
  #now: Part = { ...EMPTY };
  #before: Part = { ...EMPTY };
  #mean: Omit<Demand, "n" | "isSlow"> = { credit: 0, input: 0, output: 1 };

  /** @param admittedAt when an earlier meter of the workspace has seen a request */
  constructor(admittedAt = Number.NEGATIVE_INFINITY) {
    this.admittedAt = admittedAt;
  }

  admitted(hold: number, input: number, now: number): void {
    const gap = now - this.admittedAt;
    this.#gap = gap > MAX_GAP_MS ? 0 : Math.max(gap, FADING * this.#gap);
    this.admittedAt = now;
    this.#turn(now);
    this.#now.requests += 1;
    this.#now.credit += hold;
    this.#now.input += input;
  }

  ended(output: number, now: number): void {
    this.#turn(now);
    this.#now.ends += 1;
    this.#now.output += output;
  }

  /** Whether no request has come for so long that none is expected. */
  isIdle(now: number): boolean {
    return now - this.admittedAt >= Math.max(IDLE_MS, GAPS * this.#gap);
  }

  /** `n` is 0 when too few requests have come to expect another one. */
  read(now: number): Demand {
    this.#turn(now);
    const sum = (key: keyof Part): number => this.#now[key] + this.#before[key];
    const n = sum("requests");
    const mean = (key: keyof Part, of: number) => Math.ceil(sum(key) / of);
    if (n > 0) this.#mean = { ...this.#mean, credit: mean("credit", n), input: mean("input", n) };
    if (sum("ends") > 0) this.#mean.output = Math.max(1, mean("output", sum("ends")));
    const isSlow = GAPS * this.#gap > IDLE_MS;
    const expected = isSlow ? Math.max(n, Math.min(MANY, Math.ceil(AHEAD_MS / this.#gap))) : n < FEW ? 0 : n;
    return { n: this.isIdle(now) ? 0 : expected, ...this.#mean, isSlow };
  }

  #turn(now: number): void {
    const part = Math.floor(now / PART_MS);
    if (part === this.#part) return;
    this.#before = part === this.#part + 1 ? this.#now : { ...EMPTY };
    this.#now = { ...EMPTY };
    this.#part = part;
  }
}
