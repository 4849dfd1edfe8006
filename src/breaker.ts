export interface BreakerOptions {
  /** Failures in a row that open the circuit. Default 5. */
  failures?: number;
  /** Time from the opening of the circuit until one call may pass as a probe, in milliseconds. Default 10,000. */
  cooldownMs?: number;
  /** The current time in milliseconds, from any fixed point. Default `performance.now`. */
  clock?: () => number;
}

/**
 * Stops calls to a server that fails repeatedly. Each call asks `pass` first; a call that may pass then reports its
 * result exactly once, with `succeed`, `fail` or `release`.
 */
export interface Breaker {
  /** Whether a call may be made. False while the circuit is open: the call must fail at once. */
  pass(): boolean;
  /** The call succeeded: the circuit closes. */
  succeed(): void;
  /** The call failed, and the server is to blame. */
  fail(): void;
  /** The call ended and says nothing about the server, for example because the caller left. */
  release(): void;
}

/**
 * A circuit breaker with the usual three states. Closed: all calls pass. Open, after `failures` failures in a row: no
 * call passes. Half open, after `cooldownMs`: one call passes as a probe, and its result closes or reopens the
 * circuit.
 */
export function createBreaker({
  failures = 5,
  cooldownMs = 10_000,
  clock = () => performance.now(),
}: BreakerOptions = {}): Breaker {
  let failuresInRow = 0;
  let openedAt: number | undefined;
  let isProbing = false;

  return {
    pass() {
      if (openedAt === undefined) return true;
      if (isProbing || clock() - openedAt < cooldownMs) return false;
      isProbing = true;
      return true;
    },
    succeed() {
      failuresInRow = 0;
      openedAt = undefined;
      isProbing = false;
    },
    fail() {
      failuresInRow++;
      // Calls that started before the circuit opened do not extend the cool-down; a failed probe does.
      if (isProbing || (openedAt === undefined && failuresInRow >= failures)) openedAt = clock();
      isProbing = false;
    },
    release() {
      isProbing = false;
    },
  };
}
