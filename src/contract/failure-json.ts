import type { Failure } from "./failure.ts";

/** What a refusal of a compressed request names as supported. */
export const SUPPORTED_ENCODINGS = "identity";

/** The flat body of a failure, as JSON text. */
export function failureJson(failure: Failure, requestId: string): string {
  // JSON.stringify leaves out members that are undefined.
  return JSON.stringify({
    code: failure.row.code,
    message: failure.message,
    request_id: requestId,
    field: failure.field,
    limit: failure.limit,
    retry_after_ms: wholeMs(failure),
  });
}

/** The value of `Retry-After`: whole seconds, at least 1. Undefined when the failure states no time. */
export function retryAfterSeconds({ retryAfterMs }: Failure): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1_000));
}

/** The wait that a failure states, in whole milliseconds. Undefined when it states none. */
export function wholeMs({ retryAfterMs }: Failure): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs);
}
