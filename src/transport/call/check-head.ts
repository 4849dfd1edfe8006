import type { IncomingMessage } from "node:http";
import { Failure } from "../../contract/failure.ts";

/**
 * Checks what Node's parser lets pass: the version, that there is one `Host` and at most one `Content-Type`, and that
 * the only transfer coding is `chunked`. Proxies and servers disagree about which of several headers counts, and about
 * where a body in another coding ends. Node itself refuses several values of `Content-Length`.
 * @param request of HTTP/1.1
 * @throws Failure malformed_request
 */
export function checkHead({ httpVersion, headers, rawHeaders }: IncomingMessage): void {
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && (httpVersion === "1.0" || coding.toLowerCase() !== "chunked"))
    throw malformed("The only supported Transfer-Encoding is chunked, and only in HTTP/1.1.");
  if (httpVersion !== "1.1" && httpVersion !== "1.0") throw malformed("The request must state the version HTTP/1.1.");
  let hosts = 0;
  let types = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const { length } = rawHeaders[i] ?? "";
    if (length !== 4 && length !== 12) continue;
    const name = rawHeaders[i]?.toLowerCase();
    if (name === "host") hosts++;
    else if (name === "content-type") types++;
  }
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1"))
    throw malformed("The request must have exactly one header Host.");
  if (types > 1) throw malformed("The request may have only one header Content-Type.");
}

/** Whether a request has a body (RFC 9112, section 6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Whether the caller waits for `100 Continue` before it sends the body. Other expectations are ignored. */
export function expectsContinue({ headers }: IncomingMessage): boolean {
  return headers.expect !== undefined && /(?:^|\W)100-continue(?:$|\W)/i.test(headers.expect);
}

function malformed(message: string): Failure {
  return new Failure("malformed_request", { message });
}
