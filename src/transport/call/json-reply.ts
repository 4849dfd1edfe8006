import type { Failure } from "../../contract/failure.ts";
import { failureJson, retryAfterSeconds, SUPPORTED_ENCODINGS } from "../../contract/failure-json.ts";
import type { Call } from "./call.ts";
import type { Reply } from "./format.ts";
import { writeHead } from "./write.ts";

/** A response whose whole body is this JSON text. */
export function jsonReply(status: number, text: string, headers: readonly string[] = []): Reply {
  return {
    status,
    headers: [
      "Content-Type",
      "application/json; charset=utf-8",
      "Content-Length",
      String(Buffer.byteLength(text)),
      "Cache-Control",
      "no-store",
      ...headers,
    ],
    body: text,
  };
}

/** The response of a failure with the flat body of the public contract. */
export function flatFailure(failure: Failure, { requestId }: { readonly requestId: string }): Reply {
  return jsonReply(failure.row.http, failureJson(failure, requestId), failureHeaders(failure));
}

/**
 * `Retry-After`, when the failure states a time; the supported encodings, when the request has another; how to
 * authenticate, when the request does not (RFC 9110, 15.5.2).
 */
export function failureHeaders(failure: Failure): string[] {
  const seconds = retryAfterSeconds(failure);
  return [
    ...(seconds === undefined ? [] : ["Retry-After", String(seconds)]),
    ...(failure.kind === "unsupported_compression" ? ["Accept-Encoding", SUPPORTED_ENCODINGS] : []),
    ...(failure.kind === "unauthenticated" ? ["WWW-Authenticate", "Bearer"] : []),
  ];
}

export function sendJson(call: Call, status: number, text: string): void {
  const { headers, body } = jsonReply(status, text);
  writeHead(call, status, headers);
  call.response.end(body);
}
