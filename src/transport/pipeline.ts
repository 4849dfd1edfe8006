import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Turns } from "../turns.ts";

/**
 * Most requests of a connection that wait for an earlier response. The service answers them and then closes the
 * connection, after which a caller sends the others again (RFC 9112, section 9.3.2).
 */
const MAX_WAITING = 32;

/** Requests that start in one turn of the event loop, of each connection in turn. Each takes 0.1 to 0.3 ms. */
const turns = new Turns<Pipeline>(4);

interface Waiting {
  readonly response: ServerResponse;
  readonly run: () => void;
}

/** The requests of one HTTP/1.1 connection that arrived before the responses to earlier ones were sent. */
export class Pipeline {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  #isFull = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Keeps a request until `next` starts it. Drops it, and reads no further one, when too many wait. */
  add(request: Waiting): void {
    if (this.#isFull) return;
    if (this.#waiting.length < MAX_WAITING) {
      this.#waiting.push(request);
      return;
    }
    this.#isFull = true;
    const last = this.#waiting.at(-1);
    if (last) last.response.shouldKeepAlive = false;
    // Node parses the rest of the chunk. Another listener takes the connection away from Node's parser.
    process.nextTick(() => this.#socket.removeAllListeners("data").on("data", () => {}));
  }

  /** Starts the next request in this turn of the event loop or in a later one, unless the connection has ended. */
  next(start: (request: Waiting) => void): void {
    turns.add(this, () => {
      const request = this.#socket.writable ? this.#waiting.shift() : undefined;
      if (request) start(request);
      return request !== undefined;
    });
  }

  clear(): void {
    this.#waiting.length = 0;
  }
}
