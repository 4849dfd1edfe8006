/** Code that must not affect a request when it fails. `promise` is a rejected promise that nothing awaits. */
export const PLACES = ["metric", "log", "report", "model_call", "trace", "learning", "promise"] as const;
export type Place = (typeof PLACES)[number];

/** Catches and counts the errors of code that must not affect a request. No method throws. */
export interface InternalErrors {
  /** Runs `run`. An error that it throws is counted and reported, not thrown. */
  guard(where: Place, run: () => void): void;
  /** Counts and reports an error that was caught elsewhere. */
  add(where: Place, error: unknown): void;
  /** Errors since the start of the process. */
  readonly counts: Readonly<Record<Place, number>>;
}

/** Reports an error. @param errors the number of errors since the last report, this one included */
export type ErrorReport = (where: Place, error: unknown, errors: number) => void;

/** Shortest time between two reports, in milliseconds. */
const REPORT_MS = 1_000;

/** @param report called at most once a second; may throw */
export function createInternalErrors(report?: ErrorReport): InternalErrors {
  const counts = Object.fromEntries(PLACES.map((place) => [place, 0])) as Record<Place, number>;
  let unreported = 0;
  let nextReport = 0;

  function add(where: Place, error: unknown): void {
    counts[where] += 1;
    unreported += 1;
    const now = performance.now();
    if (now < nextReport) return;
    // Set first, because a report that fails may add an error.
    nextReport = now + REPORT_MS;
    const errors = unreported;
    unreported = 0;
    try {
      report?.(where, error, errors);
    } catch {
      counts.log += 1;
    }
  }

  return {
    guard(where, run) {
      try {
        run();
      } catch (error) {
        add(where, error);
      }
    },
    add,
    counts,
  };
}
