import type { Headroom, LimitsLeft } from "./escrow/exchange.ts";

/** A rate limit of a workspace, as this replica knows it. */
export interface RateLimit {
  /** Such as `requests_per_minute`. */
  readonly name: string;
  readonly figure: "requests" | "input_tokens" | "output_tokens";
  readonly limit: number;
  /** What other replicas have reserved does not remain. */
  readonly remaining: number;
  /** Length of the calendar window, in seconds. */
  readonly windowSeconds: number;
  /** Time to the next window, in milliseconds. */
  readonly resetMs: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const FIGURES = [
  ["requests", "requests"],
  ["input_tokens", "input"],
  ["output_tokens", "output"],
] as const;
const UNITS = ["minute", "day", "month"] as const;

/** All limits that a workspace can have, the shortest window of each figure first. */
const LIMITS = FIGURES.flatMap(([figure, part]) =>
  UNITS.map((unit) => ({ name: `${figure}_per_${unit}`, figure, part, unit })),
);

/**
 * @param left by the database
 * @param more what is left beside that: what the replica has reserved and not used, and what it has returned; neither
 *   is finite where there is no limit
 * @param minute start of the minute for which it holds, in milliseconds since 1970
 * @param endsInMs time to the end of this minute
 */
export function rateLimits(
  left: LimitsLeft,
  more: readonly Pick<Headroom, "requests" | "input" | "output">[],
  minute: number,
  endsInMs: number,
): RateLimit[] {
  const found: RateLimit[] = [];
  for (const { name, figure, part, unit } of LIMITS) {
    const known = left[name];
    if (!known) continue;
    const [limit, rest] = known;
    let sum = rest;
    for (const each of more) if (Number.isFinite(each[part])) sum += each[part];
    const remaining = Math.max(0, Math.min(limit, sum));
    const [startsAt, endsAt] = windowOf(unit, minute);
    const resetMs = endsInMs + endsAt - (minute + MINUTE_MS);
    found.push({ name, figure, limit, remaining, windowSeconds: (endsAt - startsAt) / 1_000, resetMs });
  }
  return found;
}

/** Start and end of the window of a minute, UTC, in milliseconds since 1970. */
function windowOf(unit: (typeof UNITS)[number], minute: number): [start: number, end: number] {
  if (unit === "minute") return [minute, minute + MINUTE_MS];
  if (unit === "day") {
    const start = minute - (minute % DAY_MS);
    return [start, start + DAY_MS];
  }
  const date = new Date(minute);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return [Date.UTC(year, month), Date.UTC(year, month + 1)];
}
