/** What happened to the attacker, by the number of times or by the longest time. */
export interface AttackCounts {
  counts: Record<string, number>;
  longest: Record<string, number>;
}

export interface Recorder {
  /** Counts something that happened to the attacker, such as a status. */
  count(what: string, by?: number): void;
  /** Notes a duration in milliseconds, of which the longest is reported. */
  longest(what: string, ms: number): void;
}

/** @param seen takes what is recorded */
export function recordInto(seen: AttackCounts): Recorder {
  return {
    count(what, by = 1) {
      seen.counts[what] = (seen.counts[what] ?? 0) + by;
    },
    longest(what, ms) {
      seen.longest[what] = Math.max(seen.longest[what] ?? 0, ms);
    },
  };
}
