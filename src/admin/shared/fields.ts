import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { invalid } from "../../contract/failure.ts";
import { FIRST_TIME, LAST_TIME } from "../../contract/years.ts";

const MAX_LABEL = 200;

/** The time in the years 1 to 9999 that is nearest to one. @param ms milliseconds since 1970 */
export function nearestTime(ms: number): Date {
  return new Date(Math.min(Math.max(ms, FIRST_TIME), LAST_TIME));
}

/**
 * Checks a name or label: up to 200 characters, no control characters. @throws Failure `invalid_request` with the field
 */
export function checkLabel(field: string, text: string): void {
  if ([...text].length > MAX_LABEL || /\p{Cc}/u.test(text)) {
    throw invalid(field, `${field} may have up to ${MAX_LABEL} characters, and no control characters.`);
  }
}

/**
 * Reads the time at which a key or token expires.
 * @param now milliseconds since 1970
 * @returns null without a time: never
 * @throws Failure `invalid_request` with the field, unless the time is in the future and before the year 10000
 */
export function readExpiry(timestamp: Timestamp | undefined, now: number, field = "expires_at"): Date | null {
  if (!timestamp) return null;
  const expiresAt = timestampDate(timestamp);
  if (!(expiresAt.getTime() > now && expiresAt.getTime() <= LAST_TIME)) {
    throw invalid(field, `${field} must be a time in the future, before the year 10000.`);
  }
  return expiresAt;
}

/**
 * Reads a time of a message.
 * @throws Failure `invalid_request` naming the field, unless it lies in the years 1 to 9999.
 */
export function readTimestamp(field: string, timestamp: Timestamp | undefined): Date | undefined {
  if (!timestamp) return undefined;
  const date = timestampDate(timestamp);
  if (!(date.getTime() >= FIRST_TIME && date.getTime() <= LAST_TIME)) {
    throw invalid(field, `${field} must be a time in the years 1 to 9999.`);
  }
  return date;
}
