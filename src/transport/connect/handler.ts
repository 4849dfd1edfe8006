import type { RequestListener } from "node:http";
import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import type { Config } from "../../config/config.ts";
import type { Services } from "../../service/services.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { MAX_SMALL_BODY } from "../call/body-budget.ts";
import { createReport } from "../call/report.ts";
import { callerOf, noteCaller } from "../call/tracked-request.ts";
import { adminMethods } from "./admin.ts";
import { createListener } from "./exchange.ts";
import { createGenerationHandlers } from "./generation.ts";
import { methodsOf } from "./method.ts";
import { createServeMethod, type ServeOptions } from "./serve.ts";

/** What differs between the internal listener and the console. */
export interface RpcOptions extends Pick<ServeOptions, "protocols" | "authenticate" | "bodies"> {
  /** Adds further services, which Connect's own handlers serve. Their methods need no authentication. */
  addServices?(router: ConnectRouter): void;
}

/**
 * Serves the services of callers, owners and operators over Connect, and over gRPC and gRPC-Web where `options` allow
 * them.
 */
export function createRpcListener(
  options: RpcOptions,
  services: Services,
  { stream: { stallMs, headersMs } }: Pick<Config, "stream">,
  log: Log,
  telemetry: Telemetry,
): RequestListener {
  const methods = new Map([
    ...methodsOf(GenerationService, createGenerationHandlers(services)),
    ...adminMethods(services),
  ]);
  const router = createConnectRouter({ acceptCompression: [], readMaxBytes: MAX_SMALL_BODY });
  options.addServices?.(router);
  const report = createReport(log, telemetry);
  const serveMethod = createServeMethod({
    ...options,
    async authenticate(call, requirement) {
      const identity = await options.authenticate(call, requirement);
      noteCaller(call, identity);
      const isRepeatable = call.method !== "stream_generate" && call.header("idempotency-key") !== undefined;
      if ("scope" in requirement && requirement.scope === "generate")
        await services.generation.enter(callerOf(identity), isRepeatable);
      return identity;
    },
    stallMs,
    headersMs,
    report,
  });
  const { protocols } = options;
  return createListener({ methods, serveMethod, protocols, handlers: router.handlers, stallMs, log });
}
