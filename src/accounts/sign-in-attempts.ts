import { Failure } from "../failure.ts";

/** Attempts that are allowed at once. */
const BURST = 10;

/** Time until one more attempt is allowed, in milliseconds. */
const REFILL_MS = 6_000;

/** Most names in memory, about 2 MB. A name that is dropped starts again at zero. */
const MAX_NAMES = 10_000;

/** Limits the rate of attempts to sign in. */
interface Attempts {
  /**
   * Counts an attempt before its result is known, because many may run at once.
   * @param names names to count the attempt under, such as its source; each has its own limit
   * @returns a function that takes the attempt back, for an attempt that succeeds
   * @throws Failure `rate_limited` with `limit` `sign_in_attempts`; such an attempt is not counted
   */
  take(...names: string[]): () => void;
}

/**
 * Counts attempts in leaky buckets of this process. Each replica allows as many attempts; that is harmless, because
 * tokens have 160 random bits. The limit protects the database from the load of guesses.
 * @param clock a time in milliseconds that never decreases, so that a clock that is set back locks nobody out
 */
export function createAttempts(clock: () => number = () => performance.now()): Attempts {
  /** Time at which the bucket of a name will be empty. */
  const emptyAt = new Map<string, number>();
  return {
    take(...names) {
      const now = clock();
      const waitMs = Math.max(...names.map((name) => (emptyAt.get(name) ?? 0) - now - (BURST - 1) * REFILL_MS));
      if (waitMs > 0) {
        throw new Failure("rate_limited", {
          message: "There were too many attempts to sign in. Wait, then try again.",
          limit: "sign_in_attempts",
          retryAfterMs: waitMs,
        });
      }
      for (const name of names) add(name, REFILL_MS, now);
      return () => {
        for (const name of names) add(name, -REFILL_MS, now);
      };
    },
  };

  function add(name: string, ms: number, now: number): void {
    const at = Math.max(emptyAt.get(name) ?? 0, now) + ms;
    // Moves the entry to the end, which keeps the least recently used one first.
    emptyAt.delete(name);
    if (at > now) emptyAt.set(name, at);
    const [oldest] = emptyAt.keys();
    if (emptyAt.size > MAX_NAMES && oldest !== undefined) emptyAt.delete(oldest);
  }
}
