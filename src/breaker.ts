export interface BreakerOptions {
  /** Failures in a row that open the circuit. Default 5. */
  failures?: number;
  /** Time that an open circuit stays shut to all calls before one is let through to probe, in milliseconds. Default 10,000. */
  cooldownMs?: number;
  /** Milliseconds from any fixed point. Default `performance.now`. */
  clock?: () => number;
}

/** Keeps calls away from something that keeps failing. Each call that may pass reports its end exactly once. */
export interface Breaker {
  /** Asks to pass. False: the circuit is open; fail at once. */
  pass(): boolean;
  /** The call succeeded: the circuit closes. */
  succeed(): void;
  /** The call failed. */
  fail(): void;
  /** The call ended without saying anything about the other side, as when the caller went away. */
  release(): void;
}

/** A closed circuit: calls pass. Open, after failures in a row: none does. Half open, after the cool-down: one passes and decides. */
export function createBreaker({
  failures = 5,
  cooldownMs = 10_000,
  clock = () => performance.now(),
}: BreakerOptions = {}): Breaker {
  let inRow = 0;
  let openedAt: number | undefined;
  let probing = false;

  return {
    pass() {
      if (openedAt === undefined) return true;
      if (probing || clock() - openedAt < cooldownMs) return false;
      probing = true;
      return true;
    },
    succeed() {
      inRow = 0;
      openedAt = undefined;
      probing = false;
    },
    fail() {
      inRow++;
      // While the circuit is open, only a failed probe prolongs it.
      if (probing || (openedAt === undefined && inRow >= failures)) openedAt = clock();
      probing = false;
    },
    release() {
      probing = false;
    },
  };
}
