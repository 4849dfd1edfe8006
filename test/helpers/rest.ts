import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { createTelemetry } from "../../src/telemetry/create.ts";
import { createPublicServer } from "../../src/transport/listeners/public.ts";
import { createLargeReader } from "../../src/transport/reading/reader.ts";
import type { Lifetime } from "./lifetime.ts";
import { type SomeServices, servicesWith } from "./services.ts";

/** Starts a REST listener with the services in `given` only, which serves the pages of the console in `folder`. */
export async function listenRest(
  t: Lifetime,
  given: SomeServices,
  { maxConnections = 1_000, folder = "/nowhere", ...timeouts }: Partial<Server> & { folder?: string } = {},
) {
  let lines = "";
  const write = (line: string) => {
    lines += line;
  };
  const log = pino({ level: "trace" }, { write });
  const config = {
    bodyBudgetBytes: 64 * 1024 * 1024,
    body: { idleMs: 10_000, totalMs: 300_000 },
    connections: { internal: 10, vendors: 10, public: maxConnections },
    stream: { headersMs: 5, keepAliveMs: 1_000, stallMs: 1_000 },
    console: { folder, proxies: 0 },
  };
  const reader = createLargeReader();
  const server = createPublicServer(servicesWith(given), config, log, createTelemetry(), reader);
  Object.assign(server, timeouts).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await reader.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log: () => lines,
    connections: () =>
      new Promise<number>((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
  };
}
