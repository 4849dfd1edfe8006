import type { Server } from "node:http";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import { createBodyBudget } from "../../overload/body-budget.ts";
import { createWorkspaceRequests } from "../../overload/workspace-requests.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { isAnthropicPath } from "../anthropic/failure.ts";
import { ANTHROPIC, anthropicRoutes } from "../anthropic/routes.ts";
import { createAuthenticate } from "../call/authenticate.ts";
import type { Call } from "../call/call.ts";
import { sendJson } from "../call/json-reply.ts";
import type { LargeReader } from "../call/receive.ts";
import { createReport } from "../call/report.ts";
import { type Door, routeOf } from "../call/route.ts";
import { createServe } from "../call/serve.ts";
import { runGeneration, type Services } from "../call/services.ts";
import { connectRoutes } from "../connect/routes.ts";
import { authenticateOperator, authenticateOwner } from "../console/authenticate.ts";
import { consoleRoutes } from "../console/routes.ts";
import { isOpenaiPath } from "../openai/failure.ts";
import { OPENAI, openaiRoutes } from "../openai/routes.ts";
import { createDocs } from "../pages/reference.ts";
import { responsesRoutes } from "../responses/routes.ts";
import { REST, restRoutes } from "../rest/routes.ts";
import { acceptInTurns } from "../socket/accept.ts";
import { serveInOrder, trackConnections } from "../socket/connections.ts";
import { createServer } from "../socket/node-http.ts";
import { SOCKET_TIMEOUTS } from "../socket/time-limits.ts";
import { RouteTable } from "./route-table.ts";

type Settings = Pick<Config, "bodyBudgetBytes" | "body" | "stream" | "console" | "connections">;

/**
 * Creates the server of the public listener: `/v1` in all its formats, probes, documentation and the console. It uses
 * plain `node:http`, which serves about seven times as many requests a second as Connect's HTTP stack.
 */
export function createPublicServer(
  services: Services,
  config: Settings,
  log: Log,
  telemetry: Telemetry,
  reader: LargeReader,
): Server {
  const budget = createBodyBudget(config.bodyBudgetBytes, config.body, (cause) => telemetry.requestShed(cause));
  telemetry.watchBodies("rest", () => budget.used);
  const server = createServer({
    ...SOCKET_TIMEOUTS,
    // The timeout of the body comes first. Its response has the identifier of the request.
    requestTimeout: SOCKET_TIMEOUTS.headersTimeout + config.body.totalMs + 10_000,
    // Node would refuse a request without Host itself, without a body.
    requireHostHeader: false,
  });
  const max = config.connections.public;
  acceptInTurns(server);
  trackConnections(server, { max, onShed: (cause) => telemetry.requestShed(cause) });
  const serve = createServe(createDoor(services, config, budget), {
    services,
    bodies: { budget, reader },
    stream: config.stream,
    report: createReport(log, telemetry),
    log,
    open: createWorkspaceRequests(max, () => telemetry.requestShed("workspace_connections")),
  });
  const listener = serveInOrder(serve, services.draining);
  server.on("request", listener);
  server.on("checkContinue", listener);
  // Without this listener, Node refuses an unknown expectation with a 417 that has no body.
  server.on("checkExpectation", listener);
  return server;
}

/** Why no model can answer. Without the names of models and vendors, which callers must not learn. */
const NO_MODEL = {
  vendors_refuse:
    "The vendors refuse the keys, accounts or names of all models. The operator must act: the log and " +
    "`chorus models` say which.",
  models_disabled:
    "All models are disabled, so no request is answered. The operator must enable one with `chorus models enable`.",
};

function createDoor(services: Services, config: Settings, budget: ReturnType<typeof createBodyBudget>): Door {
  const routes = new RouteTable();
  const authenticate = createAuthenticate(services);
  const methods = [
    ...restRoutes(runGeneration(services), authenticate),
    ...openaiRoutes(services, authenticate),
    ...responsesRoutes(services, authenticate),
  ];
  for (const { path, verb, ...route } of methods) routes.add(path, verb, route);
  // Paths that OpenAI's API has too. There, the header `anthropic-version` decides.
  const shared = new RouteTable();
  for (const { path, verb, ...route } of anthropicRoutes(services, authenticate))
    (routes.find(path) ? shared : routes).add(path, verb, route);
  routes.add("/healthz", "GET", { send: (call) => sendJson(call, 200, '{"status":"ok"}') });
  routes.add("/readyz", "GET", {
    send(call) {
      const isReady = services.ready();
      const reason = services.noModel();
      const why = reason && { reason, message: NO_MODEL[reason] };
      sendJson(call, isReady ? 200 : 503, JSON.stringify({ status: isReady ? "ok" : "unavailable", ...why }));
    },
  });
  routes.add("/", "GET", { send: leadToConsole });
  for (const [path, send] of createDocs())
    routes.add(path, "GET", { send: ({ request, response }) => send(request, response) });

  const protocols = { grpc: false, requireVersion: true };
  const findConsole = consoleRoutes(services, config, budget, {
    owner: connectRoutes(services, { protocols, authenticate: authenticateOwner(services, config.console) }),
    operator: connectRoutes(services, { protocols, authenticate: authenticateOperator(services, config.console) }),
  });
  return {
    transport: "rest",
    find(call) {
      const { path } = call;
      const verbs = routes.find(path);
      if (verbs) return routeOf((isOfAnthropic(call) && shared.find(path)) || verbs, call);
      const found = findConsole(call);
      if (found) return found;
      throw new Failure("not_found");
    },
    fallback(call) {
      const { path } = call;
      if (isAnthropicPath(path) || (path.startsWith("/v1/") && isOfAnthropic(call))) return ANTHROPIC;
      return isOpenaiPath(path) ? OPENAI : REST;
    },
  };
}

/** Whether a client of Anthropic's API sends the call. Each sends the version of that API. */
function isOfAnthropic(call: Call): boolean {
  return call.header("anthropic-version") !== undefined;
}

/** Sends a browser to the console. @throws Failure not_found for a program, which has nothing to do there */
function leadToConsole({ request, response }: Call): void {
  response.setHeader("Vary", "Accept");
  if (!request.headers.accept?.includes("text/html")) {
    throw new Failure("not_found", {
      message: "There is nothing at /. The API is below /v1, its reference at /docs, the console at /console.",
    });
  }
  response.writeHead(302, { Location: "/console", "Cache-Control": "no-store" }).end();
}
