import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Failure } from "../../failure.ts";
import { failureJson, retryAfterSeconds } from "../failure-body.ts";

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
