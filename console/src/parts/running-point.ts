interface Points {
  /** Starts of the points, in seconds. */
  readonly at: readonly number[];
  /** Whether one of them is an interval that still runs. */
  readonly runs: boolean;
}

/** The point of the interval that still runs; undefined if the period is over, or has not begun. */
export function runningPoint({ at, runs }: Points): number | undefined {
  const now = Date.now() / 1000;
  const point = runs ? at.findLastIndex((start) => start <= now) : -1;
  return point < 0 ? undefined : point;
}
