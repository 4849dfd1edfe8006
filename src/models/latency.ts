/** How long a model takes to its first text, and when a second call beside a late one is worth it. */
export interface Latency {
  /** Books the time from a call to its first text, in milliseconds. */
  record(ms: number): void;
  /** Books a call that was given up without any text after `ms`: it would have taken longer. */
  recordAtLeast(ms: number): void;
  /**
   * Counts a call, and says after how long it is late: the 95th percentile of the last 100 calls, in milliseconds.
   * @returns undefined while fewer than 20 are known
   */
  hedgeAfterMs(): number | undefined;
  /** Asks for the right to a second call; at most one in twenty counted calls gets it. */
  maySpend(): boolean;
}

const SAMPLES = 100;
/** Fewer have no 95th percentile. */
const FEWEST = 20;
/** Below it a reader gains nothing that pays for a second call. */
const LEAST_MS = 500;
/** Share of calls that may be doubled, and how many unused rights are kept. */
const BUDGET = { share: 0.05, most: 2 };

export function createLatency(): Latency {
  const ring = new Float64Array(SAMPLES);
  let count = 0;
  let rights = 0;
  /** Sorted at most once in ten samples: 3 µs each time. */
  let known: number | undefined;

  const record = (ms: number) => {
    ring[count % SAMPLES] = ms;
    count += 1;
    if (count >= FEWEST && (known === undefined || count % 10 === 0)) {
      const size = Math.min(count, SAMPLES);
      known = ring.slice(0, size).sort()[Math.ceil(size * 0.95) - 1];
    }
  };
  return {
    record,
    recordAtLeast(ms) {
      if (known !== undefined && ms >= known) record(ms);
    },
    hedgeAfterMs() {
      if (known === undefined) return undefined;
      rights = Math.min(BUDGET.most, rights + BUDGET.share);
      return Math.max(LEAST_MS, known);
    },
    maySpend() {
      if (rights < 1 - 1e-9) return false;
      rights -= 1;
      return true;
    },
  };
}
