import type { IncomingMessage } from "node:http";

/** How much of a refused body is still read. */
const BYTES = 1024 * 1024;
const MS = 1_000;

/**
 * Reads and drops up to 1 MB of a refused body, for up to a second. Closing a connection with unread bytes resets it,
 * and the caller would lose the response.
 */
export function discardBody(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const end = () => {
      clearTimeout(timer);
      request.off("data", onData).off("end", end).off("close", end);
      resolve();
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BYTES) request.pause();
    };
    const timer = setTimeout(end, MS);
    request.on("end", end).on("close", end).on("data", onData).resume();
  });
}
