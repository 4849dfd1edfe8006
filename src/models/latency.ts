const SAMPLES = 100;
/** The 95th percentile needs at least this many samples. */
const MIN_SAMPLES = 20;
/** With a shorter wait, the reader gains too little for the price of a second call. */
const MIN_MS = 500;
/** Hedges added to the budget by each call, and the largest budget. */
const BUDGET = { perCall: 0.05, max: 2 };

/**
 * Tracks a model's time to first text, and decides when a second call beside a late one (a hedge) is worth its price.
 */
export class Latency {
  readonly #ring = new Float64Array(SAMPLES);
  #count = 0;
  #budget = 0;
  /** The 95th percentile; computed once in ten samples, because sorting takes 3 µs. */
  #p95: number | undefined;

  /** Records the time from a call to its first text, in milliseconds. */
  record(ms: number): void {
    this.#ring[this.#count % SAMPLES] = ms;
    this.#count += 1;
    if (this.#count >= MIN_SAMPLES && (this.#p95 === undefined || this.#count % 10 === 0))
      this.#p95 = this.quantiles()?.p95;
  }

  /**
   * Records a call that was ended after `ms` without any text. It counts only if `ms` is late, since its real time is
   * longer.
   */
  recordAtLeast(ms: number): void {
    if (this.#p95 !== undefined && ms >= this.#p95) this.record(ms);
  }

  /**
   * Counts a call and adds to the hedge budget.
   * @returns the time after which the call is late, in milliseconds: the 95th percentile of the last 100 calls, at
   *   least 500; undefined while fewer than 20 are recorded
   */
  hedgeAfterMs(): number | undefined {
    if (this.#p95 === undefined) return undefined;
    this.#budget = Math.min(BUDGET.max, this.#budget + BUDGET.perCall);
    return Math.max(MIN_MS, this.#p95);
  }

  /** Median and 95th percentile of the last 100 calls, in milliseconds; undefined before the first. */
  quantiles(): { p50: number; p95: number } | undefined {
    const size = Math.min(this.#count, SAMPLES);
    if (size === 0) return undefined;
    const sorted = this.#ring.slice(0, size).sort();
    const at = (share: number) => sorted[Math.ceil(size * share) - 1] ?? 0;
    return { p50: at(0.5), p95: at(0.95) };
  }

  /** Takes one hedge from the budget, which allows one for twenty counted calls. False: the budget is empty. */
  maySpend(): boolean {
    if (this.#budget < 1 - 1e-9) return false;
    this.#budget -= 1;
    return true;
  }
}
