import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Turns } from "../../concurrency/turns.ts";
import { CONNECTIONS, PER_TURN } from "../../overload/bounds.ts";

/**
 * Most requests of a connection that wait for an earlier response, and bytes that may arrive behind the first of them.
 * The service answers them and then closes the connection, after which a caller sends the others again (RFC 9112,
 * section 9.3.2).
 */
const MAX = CONNECTIONS.pipelined;

/** Starts of requests, of each connection in turn. */
const turns = new Turns<Pipeline>(PER_TURN.pipelined);

interface Waiting {
  readonly run: () => void;
  /** Undefined for bytes that are no request. */
  readonly response: ServerResponse | undefined;
  /** Bytes of the connection when it was added. */
  readonly bytesRead: number;
}

/** What Node keeps at a connection of its HTTP server, and does not document: the parser, and who gets its requests. */
type ParsedSocket = Socket & { readonly parser?: { onIncoming: () => number } | null };

/** The requests of one HTTP/1.1 connection that arrived before the responses to earlier ones were sent. */
export class Pipeline {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  #hasEnded = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Keeps a request until `next` starts it. Drops it, and reads no further one, when too many wait. */
  add(run: () => void, response: ServerResponse): void {
    if (this.#hasEnded) return;
    const { bytesRead } = this.#socket;
    const [first] = this.#waiting;
    if (!first || (this.#waiting.length < MAX.requests && bytesRead - first.bytesRead <= MAX.bytes)) {
      this.#waiting.push({ run, response, bytesRead });
      return;
    }
    const last = this.#waiting.at(-1)?.response;
    if (last) last.shouldKeepAlive = false;
    this.#end();
  }

  /** Keeps the refusal of bytes that are no request, in the place of the request whose body they are, if any. */
  addRefusal(run: () => void): void {
    if (this.#hasEnded) return;
    if (this.#waiting.at(-1)?.response?.req.complete === false) this.#waiting.pop();
    this.#waiting.push({ run, response: undefined, bytesRead: this.#socket.bytesRead });
    this.#end();
  }

  /** Starts the next request in this turn of the event loop or in a later one, unless the connection has ended. */
  next(start: (run: () => void, response: ServerResponse | undefined) => void): void {
    turns.add(this, () => {
      const request = this.#socket.writable ? this.#waiting.shift() : undefined;
      if (request) start(request.run, request.response);
      return request !== undefined;
    });
  }

  clear(): void {
    this.#waiting.length = 0;
  }

  /** Drops what arrives from now on, and the rest of the chunk that Node's parser reads. */
  #end(): void {
    this.#hasEnded = true;
    // A negative result is an error to the parser, which ends there. A chunk can have 1,000 requests, and Node takes
    // 6 µs to make one, which would hold the event loop.
    const { parser } = this.#socket as ParsedSocket;
    if (parser) parser.onIncoming = () => -1;
    // Another listener takes the connection away from Node's parser.
    process.nextTick(() => this.#socket.removeAllListeners("data").on("data", () => {}));
  }
}
