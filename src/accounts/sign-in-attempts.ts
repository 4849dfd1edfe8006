import { Failure } from "../failure.ts";

/** Attempts that somebody may make at once. */
const BURST = 10;

/** Time after which one more is allowed, in milliseconds: from then on ten a minute. */
const REFILL_MS = 6_000;

/** Most that is remembered: about 2 MB. Whoever is forgotten begins anew. */
const REMEMBERED = 10_000;

/** Slows down whoever tries again and again. */
export interface Attempts {
  /**
   * Counts an attempt, before it is known how it ends, so that many at once are slowed down too.
   * @param names what it is counted under, such as where it comes from; none may have had too many
   * @returns what takes the attempt back, for one that went well
   * @throws Failure `rate_limited` with `limit` `sign_in_attempts`; then nothing was counted.
   */
  take(...names: string[]): () => void;
}

/**
 * Counts in this process alone, as leaky buckets: with several replicas somebody has as many tries at each, which does not matter for secrets
 * of 160 bits. What counts is that nobody keeps the database busy with guesses.
 * @param clock the time in milliseconds since 1970
 */
export function createAttempts(clock: () => number = Date.now): Attempts {
  /** By name: when its attempts will have leaked away. */
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
    // Written anew at the end, so that the first entry is the one that was quiet for longest.
    emptyAt.delete(name);
    if (at > now) emptyAt.set(name, at);
    const [oldest] = emptyAt.keys();
    if (emptyAt.size > REMEMBERED && oldest !== undefined) emptyAt.delete(oldest);
  }
}
