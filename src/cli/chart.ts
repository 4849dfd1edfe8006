import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

const BAR_WIDTH = 20;
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const LEVELS = [..."▁▂▃▄▅▆▇█"];
/** Most points of a sparkline, so that it fits on one line of a terminal. */
const MAX_POINTS = 100;

/** A bar of up to 20 characters for a value; `most` has the full width. A value above 0 is never invisible. */
export function bar(value: number, most: number): string {
  if (!(value > 0) || !(most > 0)) return "";
  const eighths = Math.max(1, Math.round((value / most) * BAR_WIDTH * 8));
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
}

/**
 * One character for each interval of a period, including intervals without use.
 * @param values by the start of their interval, in milliseconds since 1970
 * @returns undefined if the period has only one interval, more than 100, or no use
 */
export function sparkline(
  values: ReadonlyMap<number, number>,
  { from, to }: { from?: Timestamp | undefined; to?: Timestamp | undefined },
  interval: string,
): string | undefined {
  if (!from || !to) return undefined;
  const points: number[] = [];
  const end = timestampDate(to);
  for (let at = timestampDate(from); at < end; at = next(at, interval)) {
    points.push(values.get(at.getTime()) ?? 0);
    if (points.length > MAX_POINTS) return undefined;
  }
  const most = Math.max(...points);
  if (points.length < 2 || most === 0) return undefined;
  return points.map((value) => (value === 0 ? " " : LEVELS[Math.ceil((value / most) * 8) - 1])).join("");
}

function next(at: Date, interval: string): Date {
  if (interval === "month") return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1));
  const ms = interval === "minute" ? 60_000 : interval === "hour" ? 3_600_000 : 86_400_000;
  return new Date(at.getTime() + ms);
}
