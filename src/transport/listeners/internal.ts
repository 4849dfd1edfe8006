import type { RequestListener } from "node:http";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import { createBodyBudget } from "../../overload/body-budget.ts";
import { TELEMETRY_TYPE } from "../../telemetry/create.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { createAuthenticate } from "../call/authenticate.ts";
import { CHORUS_SERVICES } from "../call/methods.ts";
import type { LargeReader } from "../call/receive.ts";
import { createReport } from "../call/report.ts";
import type { Door, PageRoute } from "../call/route.ts";
import { createServe } from "../call/serve.ts";
import type { Services } from "../call/services.ts";
import { handlerRoutes } from "../connect/handlers.ts";
import { addHealth } from "../connect/health.ts";
import { addReflection } from "../connect/reflection.ts";
import { connectFallback, connectRoutes } from "../connect/routes.ts";
import { requireKnownHost } from "./known-host.ts";

/**
 * Creates the request listener of the internal port: Connect, gRPC and gRPC-Web for callers, owners and operators, with
 * health, reflection and metrics. It works on HTTP/1.1 and HTTP/2.
 * @param metrics returns the text for Prometheus
 */
export function createInternalListener(
  services: Services,
  config: Pick<Config, "bodyBudgetBytes" | "body" | "stream" | "rpc">,
  log: Log,
  telemetry: Telemetry,
  reader: LargeReader,
  metrics: Pick<Telemetry, "text"> = telemetry,
): RequestListener {
  const budget = createBodyBudget(config.bodyBudgetBytes, config.body, (cause) => telemetry.requestShed(cause));
  telemetry.watchBodies("rpc", () => budget.used);
  const protocols = { grpc: true, requireVersion: false };
  const findMethod = connectRoutes(services, { protocols, authenticate: createAuthenticate(services) });
  const addServices = (router: Parameters<typeof addHealth>[0]) => {
    addHealth(router, CHORUS_SERVICES, services.ready);
    addReflection(router, [...CHORUS_SERVICES, Health], [FailureDetailSchema.file, ErrorInfoSchema.file]);
  };
  const pages = handlerRoutes(addServices, config.stream.stallMs);
  const checkHost = requireKnownHost(config.rpc);
  const prometheus: PageRoute = {
    async send({ request, response }) {
      const text = await metrics.text();
      response.writeHead(200, { "Content-Type": TELEMETRY_TYPE, "Cache-Control": "no-store" });
      response.end(request.method === "HEAD" ? undefined : text);
    },
  };
  const door: Door = {
    transport: "rpc",
    find(call) {
      checkHost(call);
      const { path, request } = call;
      if (path === "/metrics" && (request.method === "GET" || request.method === "HEAD")) return prometheus;
      const route = findMethod(call, path) ?? pages.get(path);
      if (!route) throw new Failure("not_found");
      return route;
    },
    fallback: (call) => connectFallback(protocols, call),
  };
  const report = createReport(log, telemetry);
  return createServe(door, { services, bodies: { budget, reader }, stream: config.stream, report, log });
}
