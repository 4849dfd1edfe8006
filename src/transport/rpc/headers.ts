import type { IncomingMessage } from "node:http";

/** Longest delay of Node's timers, in milliseconds. A timer with a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Reads the headers of a request. Leaves out pseudo-headers of HTTP/2, timeouts that are longer than a timer can wait,
 * and the length, because Connect does not get the body itself when it is large.
 */
export function readHeaders(request: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !name.startsWith(":"))
      headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  headers.delete("content-length");
  if (Number(headers.get("connect-timeout-ms")) > MAX_TIMER_MS) headers.delete("connect-timeout-ms");
  if (grpcTimeoutMs(headers) > MAX_TIMER_MS) headers.delete("grpc-timeout");
  return headers;
}

/**
 * Reads `grpc-timeout` in hours, minutes or seconds. Timeouts in shorter units always fit a timer; for them it returns
 * 0.
 */
function grpcTimeoutMs(headers: Headers): number {
  const [, count, unit] = /^(\d{1,8})([HMS])$/.exec(headers.get("grpc-timeout") ?? "") ?? [];
  return Number(count ?? 0) * (unit === "H" ? 3_600_000 : unit === "M" ? 60_000 : 1_000);
}
