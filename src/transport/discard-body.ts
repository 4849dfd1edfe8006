import type { IncomingMessage } from "node:http";

/** What is still taken of a body that was refused. */
const BYTES = 1024 * 1024;
const MS = 1_000;

/**
 * Takes what a caller still sends while it is told that its body is refused: up to 1 MB, for up to a second. A connection that is closed
 * with unread bytes is reset, and the answer lost.
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
