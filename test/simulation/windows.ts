export const UNITS = ["minute", "day", "week", "month"] as const;
export type Unit = (typeof UNITS)[number];

/** The time of the windows, and the reading of the clock from which it was computed. In ms since 1970. */
export interface Clocked {
  at: number;
  clock: number;
}

const MINUTE = 60_000;
const DAY = 86_400_000;

/** The windows that contain the time `at`: the start of the minute, and numbers of the others. */
export interface Windows extends Record<Unit, number> {
  at: number;
}

/** The windows when the clock reads `reading`, by the rule of periods_at.sql. */
export function currentWindows({ at, clock }: Clocked, reading: number): Windows {
  const behind = at - reading;
  let now = reading;
  if (behind > 0 && behind <= DAY) now = at + Math.max(reading - clock, 0) / 2;
  const day = Math.floor(now / DAY);
  return {
    at: now,
    minute: Math.floor(now / MINUTE) * MINUTE,
    day,
    week: Math.floor((day + 3) / 7),
    month: monthOf(day),
  };
}

/** Milliseconds until a window ends, by the rule of ms_left_in_period.sql. */
export function msLeft(clocked: Clocked, unit: Unit = "minute"): number {
  return msUntil(clocked, endOf(unit, clocked.at));
}

/** Milliseconds until a time, by the rule of ms_left_until.sql. */
export function msUntil({ at, clock }: Clocked, end: number): number {
  return 2 * (end - at) < at - clock ? 2 * (end - at) : end - clock;
}

function endOf(unit: Unit, at: number): number {
  if (unit === "minute") return (Math.floor(at / MINUTE) + 1) * MINUTE;
  const day = Math.floor(at / DAY);
  if (unit === "day") return (day + 1) * DAY;
  // Weeks begin on Monday; 1970 began on a Thursday.
  if (unit === "week") return (7 * (Math.floor((day + 3) / 7) + 1) - 3) * DAY;
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

let lastDay = Number.NaN;
let lastMonth = 0;

function monthOf(day: number): number {
  if (day !== lastDay) {
    const date = new Date(day * DAY);
    lastDay = day;
    lastMonth = date.getUTCFullYear() * 12 + date.getUTCMonth();
  }
  return lastMonth;
}
