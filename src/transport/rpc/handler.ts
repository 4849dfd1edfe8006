import type { RequestListener } from "node:http";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
  type HandlerContext,
} from "@connectrpc/connect";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import type { Config } from "../../config/config.ts";
import type { Log } from "../../log.ts";
import type { Services } from "../../service/services.ts";
import type { Telemetry } from "../../telemetry.ts";
import { checkStatedLength } from "../body-bounds.ts";
import { type BodyBudget, MAX_BODY } from "../body-budget.ts";
import { CHORUS_SERVICES, methodRules, type Requirement } from "../methods.ts";
import { createReport } from "../report.ts";
import type { RequestReader } from "../request-reader.ts";
import { callerOf, type Identity, noteCaller } from "../tracked-request.ts";
import { addAdmin } from "./admin.ts";
import { maxBytesOf } from "./body.ts";
import { serveHandlers } from "./exchange.ts";
import { createGenerationHandlers } from "./generation.ts";
import { createReporting } from "./reporting.ts";
import { REQUEST } from "./request.ts";

/** What differs between the internal listener and the console. */
export interface RpcOptions {
  /** Protocols besides Connect, and what Connect requests must contain. */
  readonly protocols: Pick<ConnectRouterOptions, "grpc" | "grpcWeb" | "requireConnectProtocolHeader">;
  /** Authenticates a request before its body is read. @throws Failure */
  authenticate(context: HandlerContext, requirement: Requirement): Promise<Identity>;
  readonly budget: BodyBudget;
  readonly reader: RequestReader;
  /** Adds further services. Their methods need no authentication. */
  addServices?(router: ConnectRouter): void;
}

/**
 * Serves the services of callers, owners and operators over Connect, and over gRPC and gRPC-Web where `options` allow
 * them.
 */
export function createRpcListener(
  options: RpcOptions,
  services: Services,
  config: Pick<Config, "stream">,
  log: Log,
  telemetry: Telemetry,
): RequestListener {
  const rules = methodRules(CHORUS_SERVICES);
  const reporting = createReporting(createReport(log, telemetry));
  const router = createConnectRouter({
    ...options.protocols,
    // Bodies are bounded and metered by their bytes on the wire, which must be those in memory.
    acceptCompression: [],
    readMaxBytes: MAX_BODY,
    // Connect calls this before it reads the body.
    requestGate: (context) =>
      admit(context).catch((error: unknown) => {
        reporting.end(context, error);
        throw reporting.connectError(error, context);
      }),
  });
  router.service(GenerationService, createGenerationHandlers(services, reporting));
  addAdmin(router, services, reporting);
  options.addServices?.(router);
  const { budget, reader } = options;
  return serveHandlers(router.handlers, { budget, reader, stallMs: config.stream.stallMs, log });

  async function admit(context: HandlerContext): Promise<void> {
    const { service, method, values, requestHeader } = context;
    const request = values.get(REQUEST);
    const rule = rules.get(method);
    if (rule) {
      request.method = rule.label;
      request.identity = await options.authenticate(context, rule.requirement);
      noteCaller(request, request.identity);
      // The answer to a repeated request is free of limits.
      const isFirst = method.methodKind !== "unary" || !requestHeader.has("idempotency-key");
      if ("scope" in rule.requirement && rule.requirement.scope === "generate" && isFirst)
        await services.generation.precheck(callerOf(request.identity));
    }
    checkStatedLength(request.contentLength, maxBytesOf(service));
  }
}
