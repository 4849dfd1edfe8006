import cluster from "node:cluster";
import type { RequestListener, Server } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { platform } from "node:os";
import { TransientSet } from "../../concurrency/transient.ts";
import { CONNECTIONS } from "../../overload/bounds.ts";
import { acceptInTurns } from "./accept.ts";
import { type ConnectionOptions, joinSession, serveInOrder, trackConnections } from "./connections.ts";
import { beginInTurns, HTTP2_OPTIONS, limitSessions } from "./http2-sessions.ts";
import { createServer as createHttp1 } from "./node-http.ts";
import { HEAD_MS, SOCKET_TIMEOUTS } from "./time-limits.ts";

export interface Listener {
  /** Base address, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * Ends each connection after its current response. New connections are still accepted, because a load balancer must
   * be able to read that the service is not ready.
   */
  drain(): void;
  /** Accepts no new connections and ends idle ones. Resolves when the last connection has ended. */
  close(): Promise<void>;
  /** Ends every connection at once. */
  destroy(): void;
}

/**
 * Whether the kernel shares connections out between the workers (SO_REUSEPORT). Elsewhere than on Linux, Node's primary
 * process accepts them and passes them on; a connection that it passes to a worker which just ends then hangs.
 */
const SHARES_PORT = cluster.isWorker && platform() === "linux";

/** Lets an HTTP server listen. Port 0 selects a free port. */
export async function listen(server: Server, host: string, port: number): Promise<Listener> {
  const url = await bind(server, host, port);
  return {
    url,
    drain() {
      server.prependListener("request", (_, response) => response.setHeader("Connection", "close"));
    },
    close: () => closed(server),
    destroy: () => server.closeAllConnections(),
  };
}

/**
 * Serves HTTP/1.1 and cleartext HTTP/2 on one port. It selects the version by the first bytes of a connection: HTTP/2
 * begins with `PRI` (RFC 9113, section 3.4), which is not a method of HTTP/1.1.
 * @param connections default: any number of connections
 */
export async function listenBoth(
  handler: RequestListener,
  host: string,
  port: number,
  connections?: ConnectionOptions,
): Promise<Listener> {
  const serve = serveInOrder(handler);
  const onHttp2 = beginInTurns(serve as unknown as Parameters<typeof beginInTurns>[0]);
  // Node would refuse a request without Host, or with an unknown expectation, itself, without a body.
  const http1 = createHttp1({ ...SOCKET_TIMEOUTS, keepAlive: true, requireHostHeader: false }, serve);
  http1.on("checkContinue", serve).on("checkExpectation", serve);
  const http2 = createHttp2(HTTP2_OPTIONS, onHttp2);
  http2.on("checkContinue", onHttp2 as never).on("checkExpectation", onHttp2 as never);
  const closeSessions = limitSessions(http2);

  // The HTTP/1.1 server owns the port, because Node applies the time limits only to a server that listens.
  const sockets = new TransientSet<Socket>();
  const unread = new TransientSet<Socket>();
  const serveHttp1 = http1.listeners("connection");
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => {
      sockets.delete(socket);
      unread.delete(socket);
    });
    unread.add(socket);
    readFirstBytes(socket, (bytes) => {
      unread.delete(socket);
      if (bytes === "PRI") {
        // The HTTP/1.1 server lets callers close their half. HTTP/2 would keep such a connection for ever.
        socket.allowHalfOpen = false;
        http2.once("session", (session) => joinSession(socket, session));
        http2.emit("connection", socket);
      } else for (const serve of serveHttp1) serve.call(http1, socket);
    });
  });
  acceptInTurns(http1);
  if (connections) trackConnections(http1, connections);
  const listener = await listen(http1, host, port);
  return {
    url: listener.url,
    drain() {
      listener.drain();
      closeSessions();
    },
    close() {
      closeSessions();
      for (const socket of unread) socket.destroy();
      return listener.close();
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * Reads the first three bytes of a connection and puts them back. Closes a connection that ends or sends none in time.
 */
function readFirstBytes(socket: Socket, done: (bytes: string) => void): void {
  const stop = () => {
    clearTimeout(timer);
    socket.off("readable", read).off("end", end).off("close", stop);
  };
  const end = () => {
    stop();
    socket.destroy();
  };
  const read = () => {
    const bytes = socket.read(3) as Buffer | null;
    if (!bytes) return;
    stop();
    socket.unshift(bytes);
    done(bytes.toString("latin1"));
  };
  const timer = setTimeout(end, HEAD_MS);
  socket.on("readable", read).on("end", end).on("close", stop);
}

async function bind(server: NetServer, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, backlog: CONNECTIONS.backlog, reusePort: SHARES_PORT }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const address = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}

function closed(server: NetServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
