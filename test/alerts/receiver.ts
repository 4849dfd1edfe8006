import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { Lifetime } from "../helpers/lifetime.ts";

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  event: { type: string; timestamp: string; data: Record<string, unknown> };
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** Statuses of the next answers, before 200 again; 0: no answer. */
  readonly statuses: number[];
}

/** Starts a receiver of webhooks and stops it after the test. */
export async function startReceiver(t: Lifetime): Promise<Receiver> {
  const received: Received[] = [];
  const statuses: number[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    received.push({ headers: request.headers, body, event: JSON.parse(body) });
    const status = statuses.shift() ?? 200;
    if (status === 0) return;
    response.writeHead(status, { location: "http://127.0.0.1:1/" }).end("x".repeat(100_000));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?a=b`, received, statuses };
}

/** The signature as the documentation tells a receiver to compute it. */
export function signatureOf({ headers, body }: Received, secret: string): string {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
