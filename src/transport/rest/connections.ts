import type { Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { newRequestId } from "../request-id.ts";
import { malformedResponse } from "./json-response.ts";

/** What the server knows of one connection. */
export interface Connection {
  /** Aborts when the connection closes. It also reaches requests that still wait for their turn on the connection. */
  readonly closed: AbortSignal;
  /** The latest response. */
  response?: ServerResponse;
}

/**
 * Follows the connections of a server, and responds to bytes that are not an HTTP request.
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
    if (error.code === "ECONNRESET" || !socket.writable || isSending) socket.destroy();
    else socket.end(malformedResponse(error, newRequestId()));
  });
  return (socket) => connections.get(socket) ?? { closed: AbortSignal.abort() };
}
