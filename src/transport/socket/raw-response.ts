import type { Failure } from "../../contract/failure.ts";
import { failureJson, retryAfterSeconds } from "../../contract/failure-json.ts";
import { STATUS_CODES } from "./node-http.ts";

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
