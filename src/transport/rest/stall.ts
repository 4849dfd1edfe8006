import type { ServerResponse } from "node:http";

/**
 * Lets Node end the connection when the reader takes nothing of the response for `stallMs` milliseconds; 0 switches
 * that off. After the response, Node sets the timeout of idle connections instead.
 */
export function endIfStalled(response: ServerResponse, stallMs: number): void {
  response.socket?.setTimeout(stallMs);
}
