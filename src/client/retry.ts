import { ChorusError, type FailureCode } from "./failure.ts";

/** Upper bound of the random backoff before the first retry, in milliseconds. It doubles with each retry. */
const FIRST_BACKOFF_MS = 500;
/** Upper bound of any backoff, in milliseconds. */
const MAX_BACKOFF_MS = 8_000;

/** Longest `retryAfterMs` that is waited for: long enough for a limit per minute, too short for a limit per day. */
const MAX_RETRY_AFTER_MS = 60_000;

/** Failures without effect or charge, after which the same request may succeed later. */
const REFUSED: ReadonlySet<FailureCode> = new Set([
  "rate_limited",
  "spend_limit_reached",
  "overloaded",
  "upstream_failed",
]);

/** Failures that no wait mends if the service states no time. */
const TIMED: ReadonlySet<FailureCode> = new Set(["rate_limited", "spend_limit_reached", "upstream_failed"]);

/** Whether the service refused the request without effect or charge, and may accept it later. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof ChorusError)) return false;
  return REFUSED.has(error.code) && (error.retryAfterMs !== undefined || !TIMED.has(error.code));
}

/** Whether an idempotent request may succeed when it is sent again. */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof ChorusError)) return false;
  const { code, status } = error;
  if (code === "unexpected_response") return status === 429 || status === 502 || status === 503 || status === 504;
  return isRefusal(error) || code === "connection_failed" || code === "idempotency_key_in_use";
}

/**
 * Waits before a retry: `retryAfterMs` of the error plus an exponential backoff with full jitter ("Exponential Backoff
 * and Jitter", AWS Architecture Blog, 2015).
 * @param attempt 0 before the first retry
 * @returns false without waiting if `retryAfterMs` is longer than 60 s
 * @throws the reason of the signal
 */
export async function backOff(error: unknown, attempt: number, signal: AbortSignal | undefined): Promise<boolean> {
  const retryAfterMs = error instanceof ChorusError ? (error.retryAfterMs ?? 0) : 0;
  if (retryAfterMs > MAX_RETRY_AFTER_MS) return false;
  const backoffMs = Math.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt);
  await pause(retryAfterMs + backoffMs, signal);
  return true;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  });
}
