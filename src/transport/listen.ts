import { createServer as createHttp1, type RequestListener, type Server } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";

export interface Listener {
  /** Address as callers write it, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly port: number;
  /** Takes no new connections, and ends those that are idle. Resolves when the last one has ended. */
  close(): Promise<void>;
  /** Ends every connection at once. */
  destroy(): void;
}

/** Time in which a new connection must send its first bytes, in milliseconds. */
const FIRST_BYTES_MS = 20_000;

/** Lets an HTTP server listen. Port 0 takes a free one. */
export async function listen(server: Server, host: string, port: number): Promise<Listener> {
  const bound = await bind(server, host, port);
  return {
    ...bound,
    close: () => closed(server),
    destroy: () => server.closeAllConnections(),
  };
}

/**
 * Serves HTTP/1.1 and cleartext HTTP/2 on one port. The first bytes of a connection tell which it is: HTTP/2 begins with `PRI`
 * (RFC 9113, section 3.4), which is no method of HTTP/1.1.
 */
export async function listenBoth(handler: RequestListener, host: string, port: number): Promise<Listener> {
  const http1 = createHttp1({ keepAliveTimeout: 65_000, headersTimeout: 20_000, requestTimeout: 300_000 }, handler);
  const http2 = createHttp2({}, handler as unknown as Parameters<typeof createHttp2>[1]);
  const sockets = new Set<Socket>();
  const sessions = new Set<{ close(): void }>();
  http2.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  // A reset connection is the caller's affair; without a listener it would end the process.
  http2.on("sessionError", () => undefined);

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
    socket.setTimeout(FIRST_BYTES_MS, () => socket.destroy());
    const read = () => {
      const head = socket.read(3) as Buffer | null;
      if (!head) return;
      socket.off("readable", read);
      socket.setTimeout(0);
      socket.removeAllListeners("timeout");
      socket.unshift(head);
      (head.toString("latin1") === "PRI" ? http2 : http1).emit("connection", socket);
    };
    socket.on("readable", read);
  });
  const bound = await bind(server, host, port);
  return {
    ...bound,
    async close() {
      http1.closeIdleConnections();
      for (const session of sessions) session.close();
      await closed(server);
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function bind(server: NetServer, host: string, port: number): Promise<{ url: string; port: number }> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const address = server.address() as AddressInfo;
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`, port: address.port };
}

function closed(server: NetServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
