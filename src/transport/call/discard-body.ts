import type { IncomingMessage } from "node:http";
import { Turns } from "../../concurrency/turns.ts";
import { freeChunk } from "./free-chunk.ts";

/** How much of a refused body is still read. */
const BYTES = 1024 * 1024;
const MS = 1_000;

/** Chunks of up to 64 KB dropped in one turn, one of each body in turn. Without turns, a flood would hold the loop. */
const turns = new Turns<IncomingMessage>(4);

/**
 * Reads and drops up to 1 MB of a refused body, for up to a second, in turns of the event loop. Closing a connection
 * with unread bytes resets it, and the caller would lose the response.
 */
export function discardBody(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
      clearTimeout(timer);
      request.off("data", onData).off("end", end).off("close", end);
      resolve();
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      freeChunk(chunk);
      request.pause();
      if (bytes <= BYTES) turns.add(request, resume);
    };
    const resume = () => {
      if (!hasEnded) request.resume();
      return !hasEnded;
    };
    const timer = setTimeout(end, MS);
    request.on("end", end).on("close", end).on("data", onData).resume();
  });
}
