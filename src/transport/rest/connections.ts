import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { LinkedAbort, type Signal } from "../../abort.ts";
import { Failure } from "../../failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { newRequestId } from "../request-id.ts";
import { rawResponse } from "./json-response.ts";

/**
 * Time in which the caller must read a response and close its side, in milliseconds. Closing a connection with unread
 * bytes resets it, and the caller would lose the response.
 */
const LINGER_MS = 1_000;

/** Connections beyond the limit that get a 503. Further ones are closed without one. */
const SPARE = 64;

/** What the server knows of one connection. */
export interface Connection {
  /** Aborts when the connection closes. It also reaches requests that still wait for their turn on the connection. */
  readonly closed: Signal;
  /** Whether the limit on connections was reached when this one was opened, so its requests are refused. */
  readonly isExcess: boolean;
  /** Notes that a request begins. */
  begin(response: ServerResponse): void;
  /** Notes that a response has been sent, and whether others wait for their turn. */
  end(): void;
}

interface Options {
  /** Most open connections. */
  readonly max: number;
  /** Called when a connection is closed or refused. */
  onShed(cause: "idle_connection" | "connections"): void;
}

/**
 * Follows the connections of a server. Answers bytes that are not an HTTP request and requests that do not arrive in
 * time, and closes their connections. When too many are open, it closes the one that has been idle for longest, of the
 * address that has most of them; when none is idle, requests on a new one are refused.
 * @returns the connection of a socket
 */
export function trackConnections(server: Server, { max, onShed }: Options): (socket: Duplex) => Connection {
  const connections = new Map<Duplex, Tracked>();
  /** Idle connections by address. In each set, the first has been idle for longest. */
  const idle = new Map<string, Set<Tracked>>();
  server.maxConnections = max + SPARE;
  server.on("drop", () => onShed("connections"));
  server.on("connection", (socket) => {
    const isExcess = connections.size >= max && !closeIdle();
    if (isExcess) onShed("connections");
    const connection = new Tracked(socket, isExcess, idle);
    connections.set(socket, connection);
    socket.once("close", () => {
      connections.delete(socket);
      connection.close();
    });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const response = connections.get(socket)?.response;
    const isSending = response?.headersSent && !response.writableFinished;
    if (error.code === "ECONNRESET" || isSending) socket.destroy();
    // Further bytes of an invalid request raise this event again.
    else if (socket.writable) closeWith(socket, new Failure(kindOf(error)));
  });
  return (socket) => connections.get(socket) ?? CLOSED;

  function closeIdle(): boolean {
    let most: Set<Tracked> | undefined;
    for (const those of idle.values()) if (!most || those.size > most.size) most = those;
    const [oldest] = most ?? [];
    if (!oldest) return false;
    onShed("idle_connection");
    connections.delete(oldest.socket);
    oldest.close();
    oldest.socket.destroy();
    return true;
  }
}

/** Shared, because creating a reason costs more than closing a connection. */
const GONE = new CallerGone();

const CLOSED: Connection = {
  closed: AbortSignal.abort(),
  isExcess: false,
  begin() {},
  end() {},
};

class Tracked implements Connection {
  readonly socket: Socket;
  readonly isExcess: boolean;
  /** The latest response. */
  response: ServerResponse | undefined;
  readonly #abort = new LinkedAbort(undefined);
  readonly #idle: Map<string, Set<Tracked>>;
  /** Kept, because a closed socket has none. */
  readonly #address: string;
  /** Requests whose response has not been sent. */
  #open = 0;

  constructor(socket: Socket, isExcess: boolean, idle: Map<string, Set<Tracked>>) {
    this.socket = socket;
    this.isExcess = isExcess;
    this.#idle = idle;
    this.#address = socket.remoteAddress ?? "";
    this.#rest();
  }

  get closed(): Signal {
    return this.#abort.signal;
  }

  begin(response: ServerResponse): void {
    this.response = response;
    if (this.#open++ === 0) this.#wake();
  }

  end(): void {
    // The time that a stalled reader had for the last response must not end the wait for the next one.
    if (--this.#open > 0) this.socket.setTimeout(0);
    else if (!this.socket.destroyed) this.#rest();
  }

  close(): void {
    this.#wake();
    this.#abort.abort(GONE);
  }

  #rest(): void {
    const those = this.#idle.get(this.#address);
    if (those) those.add(this);
    else this.#idle.set(this.#address, new Set([this]));
  }

  #wake(): void {
    const those = this.#idle.get(this.#address);
    if (those?.delete(this) && those.size === 0) this.#idle.delete(this.#address);
  }
}

function kindOf({ code }: NodeJS.ErrnoException) {
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large";
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "request_incomplete" : "malformed_request";
}

/** Sends a failure and closes the connection. Without the timer, a caller that keeps its side open would hold it. */
function closeWith(socket: Duplex, failure: Failure): void {
  socket.end(rawResponse(failure, newRequestId()));
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}
