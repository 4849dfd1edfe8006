import type { ServerResponse } from "node:http";
import type { Failure } from "../../failure.ts";

/** The flat body of a failure, as JSON text. */
export function failureBody(failure: Failure, requestId: string): string {
  // JSON.stringify leaves out what is undefined.
  return JSON.stringify({
    code: failure.row.code,
    message: failure.message,
    request_id: requestId,
    field: failure.field,
    limit: failure.limit,
    retry_after_ms: failure.retryAfterMs === undefined ? undefined : Math.ceil(failure.retryAfterMs),
  });
}

/** Writes the head of an answer whose whole body is this JSON text. */
export function sendHead(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
    "Cache-Control": "no-store",
  });
}

/** Answers with JSON text. */
export function sendJson(response: ServerResponse, status: number, text: string): void {
  sendHead(response, status, text);
  response.end(text);
}

/**
 * The answer to what is no HTTP request. It has the body of every failure, but no code and no row in the table of failures, because there
 * was nothing to be refused.
 */
export function malformedResponse({ code }: NodeJS.ErrnoException, requestId: string): string {
  const [status, message] =
    code === "HPE_HEADER_OVERFLOW"
      ? ["431 Request Header Fields Too Large", "The headers are too large. Send fewer or shorter ones."]
      : code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", "The request did not arrive in time. Send it again."]
        : ["400 Bad Request", "This is no valid HTTP/1.1 request."];
  const text = JSON.stringify({ message, request_id: requestId });
  return (
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${text.length}\r\n` +
    `Cache-Control: no-store\r\nX-Request-Id: ${requestId}\r\nConnection: close\r\n\r\n${text}`
  );
}
