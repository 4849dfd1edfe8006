import { idAt, timeOfId } from "./time-id.ts";

/**
 * Makes the identifier of a request: `req_`, the time of its arrival and 80 random bits. The time is in it because its
 * generation is found by time.
 * @param now milliseconds since 1970
 */
export function newRequestId(now = Date.now()): string {
  return idAt("req", now);
}

/**
 * The time in an identifier, in milliseconds since 1970; undefined for any other text. Earlier versions took random
 * digits alone, whose time means nothing, and is hardly ever between 1970 and today.
 */
export function timeOfRequest(id: string): number | undefined {
  return timeOfId("req", id);
}
