import type { Server } from "node:http";
import type { Socket } from "node:net";
import { Failure } from "../failure.ts";
import { failureJson } from "./failure-body.ts";
import { newRequestId } from "./request-id.ts";

/** Bounds the connections of one listener. */
export interface ConnectionLimit {
  /** Most connections that are served at a time. */
  readonly most: number;
  /** Called for each connection that is refused. */
  readonly onRefused: () => void;
}

/** Most connections at a time that are being refused; further ones are closed without a response. */
const MAX_REFUSED = 64;

/** Longest time until a refused connection is closed, in milliseconds. */
const LINGER_MS = 250;

/**
 * Refuses connections beyond the limit with 503, before the server reads from them, so that the process does not run
 * out of descriptors. Call it after every other listener of `connection` has been added.
 */
export function limitConnections(server: Server, { most, onRefused }: ConnectionLimit): void {
  const serve = server.listeners("connection");
  let open = 0;
  server.maxConnections = most + MAX_REFUSED;
  server.on("drop", onRefused);
  server.removeAllListeners("connection").on("connection", (socket: Socket) => {
    open += 1;
    socket.once("close", () => {
      open -= 1;
    });
    if (open <= most) for (const listener of serve) listener.call(server, socket);
    else {
      onRefused();
      refuse(socket);
    }
  });
}

function refuse(socket: Socket): void {
  const text = failureJson(
    new Failure("overloaded", {
      message: "Too many connections are open. Send the request again later.",
      retryAfterMs: 1_000,
    }),
    newRequestId(),
  );
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.on("error", () => socket.destroy()).once("close", () => clearTimeout(timer));
  // Reads on: closing a connection with unread bytes resets it, and the response would be lost.
  socket.resume();
  socket.end(
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\n" +
      `Content-Length: ${Buffer.byteLength(text)}\r\nRetry-After: 1\r\nCache-Control: no-store\r\n` +
      `Connection: close\r\n\r\n${text}`,
  );
}
