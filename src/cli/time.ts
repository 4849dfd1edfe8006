import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { FIRST_TIME, LAST_TIME } from "../contract/years.ts";
import { CliError } from "./target.ts";

const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a time, or a duration relative to now.
 * @param option name of the option, for the error
 * @param direction 1: a duration counts into the future; -1: into the past
 * @throws CliError with the accepted formats
 */
export function parseTime(option: string, text: string, direction: 1 | -1): Timestamp {
  const [, count, unit = ""] = /^(\d+)([mhd])$/.exec(text) ?? [];
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  const offset = Number(count) * (UNIT_MS[unit] ?? 0) * direction;
  const time = count ? Date.now() + offset : isTime ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new CliError(
      `${option} must be a time such as 2027-01-31T00:00:00Z, or a duration such as 90m, 12h or 30d, but is "${text}".`,
    );
  }
  // Date takes the 30th of February for the second of March.
  const day = text.slice(0, 10);
  if (isTime && new Date(day).getUTCDate() !== Number(day.slice(8)))
    throw new CliError(`${option} must be a day of the calendar, but is "${text}".`);
  if (time < FIRST_TIME || time > LAST_TIME)
    throw new CliError(`${option} must be a time in the years 1 to 9999, but is "${text}".`);
  return timestampFromDate(new Date(time));
}

/** Reads `--from` and `--to` as fields of a request. @throws CliError */
export function periodOf({ from, to }: { from?: string; to?: string }) {
  return {
    ...(from === undefined ? {} : { startTime: parseTime("--from", from, -1) }),
    ...(to === undefined ? {} : { endTime: parseTime("--to", to, -1) }),
  };
}
