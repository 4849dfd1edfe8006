import type { IncomingMessage } from "node:http";
import { Turns } from "../../concurrency/turns.ts";
import { BODIES, PER_TURN } from "../../overload/bounds.ts";
import { freeChunk } from "./free-chunk.ts";

/** Chunks, one of each body in turn. Without turns, a flood would hold the loop. */
const turns = new Turns<IncomingMessage>(PER_TURN.dropped);

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
      if (bytes <= BODIES.dropped.bytes) turns.add(request, resume);
    };
    const resume = () => {
      if (!hasEnded) request.resume();
      return !hasEnded;
    };
    const timer = setTimeout(end, BODIES.dropped.ms);
    request.on("end", end).on("close", end).on("data", onData).resume();
  });
}
