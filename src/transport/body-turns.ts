import type { IncomingMessage } from "node:http";

/** Most turns of the event loop until a waiting body goes on. */
const MOST_TURNS = 32;

/** Bodies that wait, the longest first. One set for all listeners, because they share the event loop. */
const waiting = new Set<IncomingMessage>();
let isScheduled = false;

/**
 * Pauses a large body after a chunk, until other work has had a turn of the event loop. Node reads up to 2 MB of each
 * connection in a turn. Without pauses, a few large bodies make each turn last 30 to 70 ms.
 */
export function awaitTurn(request: IncomingMessage): void {
  request.pause();
  waiting.add(request);
  if (!isScheduled) setImmediate(next);
  isScheduled = true;
}

/** Ends the wait of a body that is not read any further. */
export function leaveTurns(request: IncomingMessage): void {
  waiting.delete(request);
}

function next(): void {
  let left = Math.ceil(waiting.size / MOST_TURNS);
  for (const request of waiting) {
    waiting.delete(request);
    request.resume();
    if (--left === 0) break;
  }
  isScheduled = waiting.size > 0;
  if (isScheduled) setImmediate(next);
}
