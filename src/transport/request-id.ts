import type { ServerResponse } from "node:http";
import { randomHex } from "../random-hex.ts";

/** Makes the identifier of a request: `req_` and 32 hexadecimal digits. */
export function newRequestId(): string {
  return `req_${randomHex()}`;
}

/** Gives a request an identifier, and states it in the response's header `X-Request-Id`. */
export function assignRequestId(response: ServerResponse): string {
  const requestId = newRequestId();
  response.setHeader("X-Request-Id", requestId);
  return requestId;
}
