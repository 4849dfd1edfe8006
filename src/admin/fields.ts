import { invalid } from "../failure.ts";

const MAX_LABEL = 200;

/** The latest time that JavaScript and the time formats of the contract can both write. */
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Checks a name or label: up to 200 characters, no control characters. @throws Failure `invalid_request` with the field
 */
export function checkLabel(field: string, text: string): void {
  if ([...text].length > MAX_LABEL || /\p{Cc}/u.test(text)) {
    throw invalid(field, `${field} may have up to ${MAX_LABEL} characters, and no control characters.`);
  }
}

/**
 * Checks the time at which a key or token expires.
 * @param now milliseconds since 1970
 * @throws Failure `invalid_request` with `expires_at`, unless the time is absent, or in the future and before the year
 * 10000
 */
export function checkExpiry(expiresAt: Date | null | undefined, now: number): void {
  if (expiresAt && !(expiresAt.getTime() > now && expiresAt.getTime() <= LAST_TIME)) {
    throw invalid("expires_at", "expires_at must be a time in the future, before the year 10000.");
  }
}
