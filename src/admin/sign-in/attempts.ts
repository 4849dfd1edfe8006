import { Failure } from "../../contract/failure.ts";

const BURST = 10;

/** Time until one more attempt is allowed, in milliseconds. */
const REFILL_MS = 6_000;

/** Most sources in memory, about 2 MB. A source that is dropped starts again at zero. */
const MAX_SOURCES = 10_000;

/**
 * Counts failed attempts in leaky buckets of this process. Each replica allows as many attempts; that is harmless,
 * because tokens have 160 random bits.
 * @param clock a time in milliseconds that never decreases, so that a clock that is set back locks nobody out
 */
export function createAttempts(clock: () => number = () => performance.now()) {
  /** Time at which the bucket of a source will be empty. */
  const emptyAt = new Map<string, number>();
  return {
    /**
     * Counts a failed attempt.
     * @param source where it comes from; each source has its own limit
     * @throws Failure `rate_limited` with `limit` `sign_in_attempts`; such an attempt is not counted
     */
    fail(source: string): void {
      const now = clock();
      const filledTo = Math.max(emptyAt.get(source) ?? 0, now);
      const waitMs = filledTo - now - (BURST - 1) * REFILL_MS;
      if (waitMs > 0) {
        throw new Failure("rate_limited", {
          message: "There were too many attempts to sign in. Wait, then try again.",
          limit: "sign_in_attempts",
          retryAfterMs: waitMs,
        });
      }
      // Moves the entry to the end, which keeps the least recently used one first.
      emptyAt.delete(source);
      emptyAt.set(source, filledTo + REFILL_MS);
      const [oldest] = emptyAt.keys();
      if (emptyAt.size > MAX_SOURCES && oldest !== undefined) emptyAt.delete(oldest);
    },
  };
}
