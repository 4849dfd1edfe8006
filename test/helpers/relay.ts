import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Lifetime } from "./lifetime.ts";

/** A TCP relay in front of a server. */
export interface Relay {
  /** The address of the server with the relay's host and port. */
  readonly url: string;
  /** While true, connections stay open and no byte passes. */
  frozen: boolean;
  /** Number of connections so far. */
  readonly connections: number;
}

/** Starts a relay in front of the server at `url`, which ends with the test. */
export async function startRelay(t: Lifetime, url: string): Promise<Relay> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let frozen = false;
  let connections = 0;
  const server = createServer((client) => {
    connections += 1;
    const upstream = connect({ host: target.hostname, port: Number(target.port) });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      if (frozen) socket.pause();
      socket.on("error", () => undefined);
      socket.on("data", (bytes) => other.write(bytes));
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = new URL(url);
  address.hostname = "127.0.0.1";
  address.port = String((server.address() as AddressInfo).port);
  return {
    url: address.href,
    get frozen() {
      return frozen;
    },
    set frozen(value) {
      frozen = value;
      for (const socket of sockets) value ? socket.pause() : socket.resume();
    },
    get connections() {
      return connections;
    },
  };
}
