import { invalid } from "../failure.ts";

const MAX_LABEL = 200;

/** The last moment that both JavaScript and the time formats of the interfaces can write. */
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Checks a text for people. @throws Failure `invalid_request` unless it has up to 200 characters, none of them a control character. */
export function checkLabel(field: string, text: string): void {
  if ([...text].length > MAX_LABEL || /\p{Cc}/u.test(text)) {
    throw invalid(field, `${field} may have up to ${MAX_LABEL} characters, and no control characters.`);
  }
}

/**
 * Checks the time at which a key or token is to stop working.
 * @param now milliseconds since 1970
 * @throws Failure `invalid_request` naming `expires_at`, unless it is a time to come before the year 10000, or undefined.
 */
export function checkExpiry(expiresAt: Date | null | undefined, now: number): void {
  if (expiresAt && !(expiresAt.getTime() > now && expiresAt.getTime() <= LAST_TIME)) {
    throw invalid("expires_at", "expires_at must be a time to come, before the year 10000.");
  }
}
