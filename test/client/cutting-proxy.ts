import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Lifetime } from "../helpers/lifetime.ts";

export interface CuttingProxy {
  readonly url: string;
  /**
   * Breaks the next connection, once the request is through (`request`) or the response contains `part`, and passes on nothing of what
   * contained it. Without `part` its first byte counts.
   */
  cutNext(at: "request" | "response", part?: string): void;
  /** Connections that were broken. */
  readonly cuts: number;
}

/** A TCP proxy before the service at `url`, for the faults that networks have. */
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
      // The body of these tests is JSON and comes last.
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
