import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Lifetime } from "../helpers/lifetime.ts";

export interface CuttingProxy {
  readonly url: string;
  /** Breaks the next connection after the request has passed (`request`), or before its response (`response`). */
  cutNext(at: "request" | "response"): void;
  /** Breaks the connections that are open. */
  cutOpen(): void;
  /** Number of broken connections. */
  readonly cuts: number;
}

/** Starts a TCP proxy in front of the service at `url` that can break connections. */
export async function startCuttingProxy(t: Lifetime, url: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  const open = new Set<() => void>();
  let next: "request" | "response" | undefined;
  let cuts = 0;

  const server = createServer((client) => {
    const upstream = connect({ host: hostname, port: Number(port) });
    const cut = () => {
      next = undefined;
      cuts++;
      client.resetAndDestroy();
      upstream.destroy();
    };
    open.add(cut);
    client.on("close", () => open.delete(cut));
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (bytes) => {
      upstream.write(bytes);
      // The request body is JSON and arrives last.
      if (next === "request" && bytes.toString("latin1").endsWith("}")) upstream.write("", cut);
    });
    upstream.on("data", (bytes) => {
      if (next === "response") cut();
      else client.write(bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutNext(at) {
      next = at;
    },
    cutOpen() {
      for (const cut of open) cut();
    },
    get cuts() {
      return cuts;
    },
  };
}
