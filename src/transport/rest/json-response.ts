import type { ServerResponse } from "node:http";

/** Writes the headers of a response whose whole body is this JSON text. */
export function writeJsonHeaders(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
    "Cache-Control": "no-store",
  });
}

/** Sends a response with JSON text. */
export function sendJson(response: ServerResponse, status: number, text: string): void {
  writeJsonHeaders(response, status, text);
  response.end(text);
}

/**
 * The response to bytes that Node cannot read as an HTTP request. Its body looks like that of a failure, but has no
 * code, because no request was refused.
 */
export function malformedResponse({ code }: NodeJS.ErrnoException, requestId: string): string {
  const [status, message] =
    code === "HPE_HEADER_OVERFLOW"
      ? ["431 Request Header Fields Too Large", "The headers are too large. Send fewer or shorter ones."]
      : code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", "The request did not arrive in time. Send it again."]
        : ["400 Bad Request", "This is not a valid HTTP/1.1 request."];
  const text = JSON.stringify({ message, request_id: requestId });
  return (
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${text.length}\r\n` +
    `Cache-Control: no-store\r\nX-Request-Id: ${requestId}\r\nConnection: close\r\n\r\n${text}`
  );
}
