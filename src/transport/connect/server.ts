import type { RequestListener } from "node:http";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import type { Config } from "../../config/config.ts";
import type { Services } from "../../service/services.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { createBodyBudget } from "../call/body-budget.ts";
import { CHORUS_SERVICES } from "../call/methods.ts";
import type { RequestReader } from "../call/request-reader.ts";
import { authenticate } from "../call/tracked-request.ts";
import { createRpcListener, type RpcOptions } from "./handler.ts";
import { addHealth } from "./health.ts";
import { addReflection } from "./reflection.ts";

/**
 * Creates the request listener of the internal port: Connect, gRPC and gRPC-Web for callers, owners and operators, with
 * health and reflection. It works on HTTP/1.1 and HTTP/2.
 */
export function createRpcHandler(
  services: Services,
  config: Pick<Config, "bodyBudgetBytes" | "body" | "stream">,
  log: Log,
  telemetry: Telemetry,
  reader: RequestReader,
): RequestListener {
  const budget = createBodyBudget(config.bodyBudgetBytes, config.body, (cause) => telemetry.requestShed(cause));
  telemetry.watchBodies("rpc", () => budget.used);
  const options: RpcOptions = {
    protocols: { grpc: true, requireVersion: false },
    bodies: { budget, reader },
    authenticate: ({ header }, requirement) => authenticate(services, requirement, header),
    addServices(router) {
      addHealth(router, CHORUS_SERVICES, services.ready);
      addReflection(router, [...CHORUS_SERVICES, Health], [FailureDetailSchema.file, ErrorInfoSchema.file]);
    },
  };
  return createRpcListener(options, services, config, log, telemetry);
}
