import type { Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Failure } from "../../failure.ts";
import { newRequestId } from "../request-id.ts";
import { rawResponse } from "./json-response.ts";

/**
 * Time in which the caller must read a response and close its side, in milliseconds. Closing a connection with unread
 * bytes resets it, and the caller would lose the response.
 */
const LINGER_MS = 1_000;

/** What the server knows of one connection. */
export interface Connection {
  /** Aborts when the connection closes. It also reaches requests that still wait for their turn on the connection. */
  readonly closed: AbortSignal;
  /** The latest response. */
  response?: ServerResponse;
}

/**
 * Follows the connections of a server. Answers bytes that are not an HTTP request and requests that do not arrive in
 * time, and closes their connections.
 * @returns the connection of a socket
 */
export function trackConnections(server: Server): (socket: Duplex) => Connection {
  const connections = new WeakMap<Duplex, Connection>();
  server.on("connection", (socket) => {
    const controller = new AbortController();
    socket.once("close", () => controller.abort());
    connections.set(socket, { closed: controller.signal });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const response = connections.get(socket)?.response;
    const isSending = response?.headersSent && !response.writableFinished;
    if (error.code === "ECONNRESET" || isSending) socket.destroy();
    // Further bytes of an invalid request raise this event again.
    else if (socket.writable) closeWith(socket, new Failure(kindOf(error)));
  });
  return (socket) => connections.get(socket) ?? { closed: AbortSignal.abort() };
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
