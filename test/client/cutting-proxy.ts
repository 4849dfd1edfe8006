import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Lifetime } from "../helpers/lifetime.ts";

export interface CuttingProxy {
  readonly url: string;
  /**
   * Breaks the next connection after the request has passed (`request`), or before the response chunk that contains
   * `part` (`response`). Without `part`, it breaks before the first chunk.
   */
  cutNext(at: "request" | "response", part?: string): void;
  /** Number of broken connections. */
  readonly cuts: number;
}

/** Starts a TCP proxy in front of the service at `url` that can break connections. */
export async function startCuttingProxy(t: Lifetime, url: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let next: { at: "request" | "response"; part: string } | undefined;
  let cuts = 0;

  const server = createServer((client) => {
    const upstream = connect({ host: hostname, port: Number(port) });
    let received = "";
    const cut = () => {
      next = undefined;
      cuts++;
      client.resetAndDestroy();
      upstream.destroy();
    };
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
      if (next?.at === "request" && bytes.toString("latin1").endsWith("}")) upstream.write("", cut);
    });
    upstream.on("data", (bytes) => {
      received += bytes.toString("latin1");
      if (next?.at === "response" && received.includes(next.part)) cut();
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
    cutNext(at, part = "") {
      next = { at, part };
    },
    get cuts() {
      return cuts;
    },
  };
}
