import { createServer, type Server } from "node:http";
import type { Config } from "../../config/config.ts";
import type { Services } from "../../service/services.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { createBodyBudget } from "../call/body-budget.ts";
import { createReport } from "../call/report.ts";
import type { RequestReader } from "../call/request-reader.ts";
import { createConsole } from "../console/routes.ts";
import { createOperatorRpc, createOwnerRpc } from "../console/rpc.ts";
import { acceptInTurns } from "../socket/accept.ts";
import { trackConnections } from "../socket/connections.ts";
import { SOCKET_TIMEOUTS } from "../socket/time-limits.ts";
import { createServeExchange } from "./exchange.ts";
import { createHandlers } from "./handlers.ts";
import { createRouter } from "./routes.ts";
import { createWorkspaceRequests } from "./workspace-requests.ts";

/**
 * Creates the server of the public listener: the REST and SSE contract of `/v1`, probes, documentation and the console.
 * It uses plain `node:http`, which serves about seven times as many requests a second as Connect's HTTP stack. Paths
 * and HTTP methods of `/v1` come from the `google.api.http` annotations.
 */
export function createRestServer(
  services: Services,
  config: Pick<Config, "bodyBudgetBytes" | "body" | "stream" | "console" | "connections">,
  log: Log,
  telemetry: Telemetry,
  reader: RequestReader,
): Server {
  const budget = createBodyBudget(config.bodyBudgetBytes, config.body, (cause) => telemetry.requestShed(cause));
  telemetry.watchBodies("rest", () => budget.used);
  const parts = { services, config, bodies: { budget, reader }, log, telemetry };
  const rpc = { owner: createOwnerRpc(parts), operator: createOperatorRpc(parts) };
  const console = createConsole(services, config, budget, rpc);
  const server = createServer({
    ...SOCKET_TIMEOUTS,
    // The timeout of the body comes first. Its response has the identifier of the request.
    requestTimeout: SOCKET_TIMEOUTS.headersTimeout + config.body.totalMs + 10_000,
    // Node would refuse a request without Host itself, without a body.
    requireHostHeader: false,
  });
  const max = config.connections.public;
  const open = createWorkspaceRequests(max, () => telemetry.requestShed("workspace_connections"));
  acceptInTurns(server);
  trackConnections(server, { max, onShed: (cause) => telemetry.requestShed(cause) });
  const serve = createServeExchange({
    router: createRouter(createHandlers({ services, stream: config.stream, budget, reader, open }), console.find),
    report: createReport(log, telemetry),
    draining: services.draining,
    stallMs: config.stream.stallMs,
  });
  server.on("request", (request, response) => serve(request, response, false));
  server.on("checkContinue", (request, response) => serve(request, response, true));
  // Without this listener, Node refuses an unknown expectation with a 417 that has no body.
  server.on("checkExpectation", (request, response) => serve(request, response, false));
  return server;
}
