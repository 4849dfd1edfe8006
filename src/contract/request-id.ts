import { randomHex } from "./random-hex.ts";

/** Makes the identifier of a request: `req_` and 32 hexadecimal digits. */
export function newRequestId(): string {
  return `req_${randomHex()}`;
}
