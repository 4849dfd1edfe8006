import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { CliError } from "./clients.ts";

const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Reads a time, or a span from now.
 * @param option name of the option, for the error
 * @param direction 1: a span lies in the future; -1: in the past
 * @throws CliError saying what would do.
 */
export function parseTime(option: string, text: string, direction: 1 | -1): Timestamp {
  const [, count, unit = ""] = /^(\d+)([mhd])$/.exec(text) ?? [];
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  const span = Number(count) * (UNIT_MS[unit] ?? 0) * direction;
  const date = new Date(count ? Date.now() + span : isTime ? text : Number.NaN);
  if (Number.isNaN(date.getTime())) {
    throw new CliError(
      `${option} must be a time such as 2027-01-31T00:00:00Z, or a span such as 90m, 12h or 30d, but is "${text}".`,
    );
  }
  return timestampFromDate(date);
}
