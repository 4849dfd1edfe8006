import { ChorusError, type FailureCode } from "./failure.ts";

/** Backoff before the first retry, and the most before any, in milliseconds. Each is a ceiling: the wait is a random part of it. */
const FIRST_MS = 500;
const MOST_MS = 8_000;

/** The longest wait that the service may ask for; rate limits of the minute are over by then, those of the day are not. */
const PATIENCE_MS = 60_000;

/** Failures of requests that the service refused, uncharged, and may take later. */
const REFUSED: ReadonlySet<FailureCode> = new Set([
  "rate_limited",
  "spend_limit_reached",
  "overloaded",
  "upstream_failed",
]);

/** Whether the service has said that nothing was done and that the same request may pass later. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ChorusError && REFUSED.has(error.code);
}

/** Whether a request may be sent again that has the same effect when it is done twice. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof ChorusError)) return false;
  const { code, status } = error;
  if (code === "unexpected_response") return status === 429 || status === 502 || status === 503 || status === 504;
  return isRefusal(error) || code === "connection_failed" || code === "idempotency_key_in_use";
}

/**
 * Waits before a retry: exponential backoff with full jitter, on top of the time that the service asked for. Full jitter after
 * "Exponential Backoff and Jitter", AWS Architecture Blog, 2015.
 * @param attempt 0 before the first retry
 * @returns false, at once, when the service asked for more patience than this client has
 * @throws the reason of the signal
 */
export async function backOff(error: unknown, attempt: number, signal: AbortSignal | undefined): Promise<boolean> {
  const asked = error instanceof ChorusError ? (error.retryAfterMs ?? 0) : 0;
  if (asked > PATIENCE_MS) return false;
  await pause(asked + Math.random() * Math.min(MOST_MS, FIRST_MS * 2 ** attempt), signal);
  return true;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, ms);
    if (signal?.aborted) leave();
    else signal?.addEventListener("abort", leave, { once: true });
  });
}
