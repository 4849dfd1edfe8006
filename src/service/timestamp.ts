import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { invalid } from "../failure.ts";

/** What both sides of the store can write: the years 1 to 9999. */
const FIRST = Date.parse("0001-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Reads a time of a message.
 * @throws Failure `invalid_request` naming the field, unless it lies in the years 1 to 9999.
 */
export function readTimestamp(field: string, timestamp: Timestamp | undefined): Date | undefined {
  if (!timestamp) return undefined;
  const date = timestampDate(timestamp);
  if (!(date.getTime() >= FIRST && date.getTime() <= LAST)) {
    throw invalid(field, `${field} must be a time in the years 1 to 9999.`);
  }
  return date;
}
