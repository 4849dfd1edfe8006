import { STATUS_CODES } from "node:http";
import type { Failure } from "../../contract/failure.ts";
import { hasBody } from "../call/check-head.ts";
import { discardBody } from "../call/discard-body.ts";
import { failureJson, retryAfterSeconds } from "./failure.ts";
import type { Exchange } from "./handler.ts";

type To = Pick<Exchange, "response" | "requestId">;

/** Writes the headers of a response whose whole body is this JSON text. */
export function writeJsonHeaders({ response, requestId }: To, status: number, text: string): void {
  // Node writes a list as it is; an object, or headers that were set before, it copies first.
  response.writeHead(status, [
    "Content-Type",
    "application/json; charset=utf-8",
    "Content-Length",
    String(Buffer.byteLength(text)),
    "Cache-Control",
    "no-store",
    "X-Request-Id",
    requestId,
  ]);
}

/** Sends a response with JSON text. */
export function sendJson(to: To, status: number, text: string): void {
  writeJsonHeaders(to, status, text);
  to.response.end(text);
}

/**
 * Refuses a request with JSON text. If its body has not arrived, the connection is closed after the response, and the
 * body is dropped.
 */
export function sendRefusal(to: To & Pick<Exchange, "request">, status: number, text: string): void {
  const { request, response } = to;
  if (request.complete || !hasBody(request)) {
    sendJson(to, status, text);
    return;
  }
  response.setHeader("Connection", "close");
  writeJsonHeaders(to, status, text);
  response.write(text);
  discardBody(request).then(() => response.end());
}

/** The text of a response with a failure, for a connection on which Node can read no further request. */
export function rawResponse(failure: Failure, requestId: string): string {
  const { http } = failure.row;
  const text = failureJson(failure, requestId);
  const retryAfter = retryAfterSeconds(failure);
  return (
    `HTTP/1.1 ${http} ${STATUS_CODES[http]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `Content-Length: ${Buffer.byteLength(text)}\r\nCache-Control: no-store\r\nX-Request-Id: ${requestId}\r\n` +
    `${retryAfter === undefined ? "" : `Retry-After: ${retryAfter}\r\n`}Connection: close\r\n\r\n${text}`
  );
}
