/**
 * Tracks a model's time to first text, and decides when a second call beside a late one (a hedge) is worth its price.
 */
export interface Latency {
  /** Records the time from a call to its first text, in milliseconds. */
  record(ms: number): void;
  /**
   * Records a call that was ended after `ms` without any text. It counts only if `ms` is late, since its real time is
   * longer.
   */
  recordAtLeast(ms: number): void;
  /**
   * Counts a call and adds to the hedge budget.
   * @returns the time after which the call is late, in milliseconds: the 95th percentile of the last 100 calls, at
   *   least 500; undefined while fewer than 20 are recorded
   */
  hedgeAfterMs(): number | undefined;
  /** Median and 95th percentile of the last 100 calls, in milliseconds; undefined before the first. */
  quantiles(): { p50: number; p95: number } | undefined;
  /** Takes one hedge from the budget, which allows one for twenty counted calls. False: the budget is empty. */
  maySpend(): boolean;
}

const SAMPLES = 100;
/** The 95th percentile needs at least this many samples. */
const MIN_SAMPLES = 20;
/** With a shorter wait, the reader gains too little for the price of a second call. */
const MIN_MS = 500;
/** Hedges added to the budget by each call, and the largest budget. */
const BUDGET = { perCall: 0.05, max: 2 };

export function createLatency(): Latency {
  const ring = new Float64Array(SAMPLES);
  let count = 0;
  let budget = 0;
  /** The 95th percentile; computed once in ten samples, because sorting takes 3 µs. */
  let p95: number | undefined;

  const record = (ms: number) => {
    ring[count % SAMPLES] = ms;
    count += 1;
    if (count >= MIN_SAMPLES && (p95 === undefined || count % 10 === 0)) {
      const size = Math.min(count, SAMPLES);
      p95 = ring.slice(0, size).sort()[Math.ceil(size * 0.95) - 1];
    }
  };
  return {
    record,
    recordAtLeast(ms) {
      if (p95 !== undefined && ms >= p95) record(ms);
    },
    hedgeAfterMs() {
      if (p95 === undefined) return undefined;
      budget = Math.min(BUDGET.max, budget + BUDGET.perCall);
      return Math.max(MIN_MS, p95);
    },
    quantiles() {
      const size = Math.min(count, SAMPLES);
      if (size === 0) return undefined;
      const sorted = ring.slice(0, size).sort();
      const at = (share: number) => sorted[Math.ceil(size * share) - 1] ?? 0;
      return { p50: at(0.5), p95: at(0.95) };
    },
    maySpend() {
      if (budget < 1 - 1e-9) return false;
      budget -= 1;
      return true;
    },
  };
}
