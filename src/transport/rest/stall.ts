import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Timeouts of responses that wait for their turn on the connection. */
const waiting = new WeakMap<ServerResponse, number>();

/**
 * Lets Node end the connection when the reader takes nothing of the response for `stallMs` milliseconds; 0 switches
 * that off. The time starts when the connection sends this response. After the response, Node sets the timeout of idle
 * connections instead.
 */
export function endIfStalled(response: ServerResponse, stallMs: number): void {
  if (response.socket) response.socket.setTimeout(stallMs);
  else {
    if (!waiting.has(response))
      response.once("socket", (socket: Socket) => socket.setTimeout(waiting.get(response) ?? 0));
    waiting.set(response, stallMs);
  }
}
