import { createServer as createHttp1, type RequestListener, type Server } from "node:http";
import { createServer as createHttp2, type ServerHttp2Session } from "node:http2";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";

export interface Listener {
  /** Address as callers write it, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * From now on connections end with the answer under way. New ones are still taken, so that a load balancer can see that the service is
   * not ready, and a caller is told to come back instead of meeting a closed port.
   */
  drain(): void;
  /** Takes no new connections, and ends those that are idle. Resolves when the last one has ended. */
  close(): Promise<void>;
  /** Ends every connection at once. */
  destroy(): void;
}

/** Time in which a new connection must send its first bytes, in milliseconds. */
const FIRST_BYTES_MS = 20_000;

const HTTP1 = { keepAliveTimeout: 65_000, headersTimeout: 20_000, requestTimeout: 300_000, keepAlive: true };

/** Lets an HTTP server listen. Port 0 takes a free one. */
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
 * Serves HTTP/1.1 and cleartext HTTP/2 on one port. The first bytes of a connection tell which it is: HTTP/2 begins with `PRI`
 * (RFC 9113, section 3.4), which is no method of HTTP/1.1.
 */
export async function listenBoth(handler: RequestListener, host: string, port: number): Promise<Listener> {
  const http1 = createHttp1(HTTP1, handler).on("checkContinue", handler);
  const onHttp2 = handler as unknown as Parameters<typeof createHttp2>[1];
  // Megabytes of one connection that wait to be sent; a proxy carries hundreds of answers on one, and node's 10 would refuse new calls.
  const http2 = createHttp2({ maxSessionMemory: 64 }, onHttp2).on("checkContinue", onHttp2 as never);
  const sessions = new Set<ServerHttp2Session>();
  http2.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  // A reset connection is the caller's affair; without a listener it would end the process.
  http2.on("sessionError", () => undefined);

  // The HTTP/1.1 server owns the port, for only a server that listens keeps its time limits.
  const sockets = new Set<Socket>();
  const silent = new Set<Socket>();
  const serveHttp1 = http1.listeners("connection");
  http1.removeAllListeners("connection").on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      sockets.delete(socket);
      silent.delete(socket);
    });
    silent.add(socket);
    firstBytes(socket, (head) => {
      silent.delete(socket);
      if (head === "PRI") http2.emit("connection", socket);
      else for (const serve of serveHttp1) serve.call(http1, socket);
    });
  });
  const listener = await listen(http1, host, port);
  const closeSessions = () => {
    for (const session of sessions) session.close();
  };
  return {
    url: listener.url,
    drain() {
      listener.drain();
      closeSessions();
    },
    close() {
      closeSessions();
      for (const socket of silent) socket.destroy();
      return listener.close();
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Looks at the first three bytes of a connection and puts them back. A connection that sends none in time, or ends, is closed. */
function firstBytes(socket: Socket, done: (head: string) => void): void {
  const stop = () => {
    clearTimeout(timer);
    socket.off("readable", read).off("end", end).off("close", stop);
  };
  const end = () => {
    stop();
    socket.destroy();
  };
  const read = () => {
    const head = socket.read(3) as Buffer | null;
    if (!head) return;
    stop();
    socket.unshift(head);
    done(head.toString("latin1"));
  };
  const timer = setTimeout(end, FIRST_BYTES_MS);
  socket.on("readable", read).on("end", end).on("close", stop);
}

async function bind(server: NetServer, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
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
