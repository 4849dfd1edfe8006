import { randomUUID } from "node:crypto";
import type { RequestListener } from "node:http";
import { create, type DescService } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import {
  GenerationService,
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import type { Actor } from "../../accounts/audit.ts";
import type { Caller, Scope } from "../../accounts/keys.ts";
import type { Config } from "../../config/config.ts";
import { Failure, toFailure } from "../../failure.ts";
import type { Log } from "../../log.ts";
import { CallerGone, type Facts, type GenerateEvent, type RequestContext } from "../../service/request-context.ts";
import type { Services } from "../../service/services.ts";
import type { RequestEnd, Telemetry } from "../../telemetry.ts";
import { createReport } from "../report.ts";
import { type BodyBudget, createBodyBudget, MAX_BODY, tooLarge } from "../rest/body.ts";
import { ACTOR, ADMIN_SERVICES, actorByToken, addAdmin } from "./admin.ts";
import { serveHandlers } from "./exchange.ts";
import { addHealth } from "./health.ts";
import { addReflection } from "./reflection.ts";

const REQUEST_ID = createContextKey("");
const STARTED_AT = createContextKey(0);
const FACTS = createContextKey<Facts>({});
const CALLER = createContextKey<Caller | undefined>(undefined);

/** Scope that each method of the callers' service needs. */
const SCOPES: Record<keyof typeof GenerationService.method, Scope> = {
  generate: "generate",
  streamGenerate: "generate",
  quotas: "metrics",
  metrics: "metrics",
};

/** Largest call of the services that take no prompts, in bytes. */
const MAX_SMALL_BODY = 64 * 1024;

/** A way into the services: who may come in, and how. */
export interface Door {
  /** Protocols other than Connect that it speaks, and what it asks of a call. */
  protocols: Pick<ConnectRouterOptions, "grpc" | "grpcWeb" | "requireConnectProtocolHeader">;
  /** Finds out who calls, before anything of the body is read. @throws Failure */
  admit(context: HandlerContext): Promise<{ caller?: Caller; actor?: Actor | undefined }>;
  /** Room for bodies. */
  budget: BodyBudget;
  /** Adds what is served beside the services. */
  add?(router: ConnectRouter): void;
}

/**
 * The internal face: Connect, gRPC and gRPC-Web for callers and operators, with reflection and health. Works for HTTP/1.1 and HTTP/2.
 * Nothing is compressed, so that the bytes on the wire are those that are held.
 */
export function createRpcHandler(
  services: Services,
  config: Pick<Config, "bodyBudgetBytes" | "stream">,
  log: Log,
  telemetry: Telemetry,
): RequestListener {
  const budget = createBodyBudget(config.bodyBudgetBytes);
  telemetry.watchBodies("rpc", () => budget.used);
  const door: Door = {
    protocols: {},
    budget,
    async admit(context) {
      const { service, method, requestHeader } = context;
      if (service.typeName !== GenerationService.typeName) return { actor: await actorByToken(services, context) };
      const scope = SCOPES[method.localName as keyof typeof SCOPES];
      return { caller: await services.authorize(requestHeader.get("x-api-key") ?? undefined, scope) };
    },
    add(router) {
      addHealth(router, [GenerationService, ...ADMIN_SERVICES], services.ready);
      addReflection(router, [GenerationService, ...ADMIN_SERVICES, Health], [FailureDetailSchema.file]);
    },
  };
  return openDoor(door, services, config, log, telemetry);
}

/** Serves the services of callers, owners and operators to whoever a door lets in. */
export function openDoor(
  door: Door,
  services: Services,
  config: Pick<Config, "stream">,
  log: Log,
  telemetry: Telemetry,
): RequestListener {
  const report = createReport(log, telemetry);
  const router = createConnectRouter({
    ...door.protocols,
    acceptCompression: [],
    readMaxBytes: MAX_BODY,
    // Runs before anything of the body is read.
    requestGate: (context) =>
      admit(context).catch((error: unknown) => {
        end(context, error);
        throw connectError(error, context);
      }),
  });
  router.service(GenerationService, {
    generate: (request, context) => guarded(context, () => services.generation.generateWhole(request, callOf(context))),
    async *streamGenerate(request, context) {
      let failure: unknown;
      try {
        for await (const event of services.generation.generate(request, callOf(context), true))
          yield eventMessage(event);
      } catch (error) {
        failure = error;
        throw connectError(error, context);
      } finally {
        end(context, failure);
      }
    },
    quotas: (_, context) => guarded(context, () => services.quotas(callOf(context).caller)),
    metrics: (request, context) => guarded(context, () => services.metrics(request, callOf(context).caller)),
  });
  addAdmin(router, services, guarded);
  door.add?.(router);

  return serveHandlers(router.handlers, {
    maxBytes: ({ service }) => maxBytes(service),
    budget: door.budget,
    newRequestId: () => `req_${randomUUID().replaceAll("-", "")}`,
    values: (requestId) =>
      createContextValues().set(REQUEST_ID, requestId).set(STARTED_AT, performance.now()).set(FACTS, {}),
    refusal: (error, values) => connectError(error, { values }),
    stallMs: config.stream.stallMs,
    log,
  });

  async function admit(context: HandlerContext): Promise<void> {
    const { requestHeader, values, service } = context;
    const { caller, actor } = await door.admit(context);
    values.set(CALLER, caller).set(ACTOR, actor);
    if (caller) Object.assign(values.get(FACTS), { workspaceId: caller.workspaceId, keyId: caller.keyId });
    const max = maxBytes(service);
    if (Number(requestHeader.get("content-length") ?? 0) > max) throw tooLarge(max);
  }

  async function guarded<T>(context: HandlerContext, run: () => Promise<T>): Promise<T> {
    let failure: unknown;
    try {
      return await run();
    } catch (error) {
      failure = error;
      throw connectError(error, context);
    } finally {
      end(context, failure);
    }
  }

  function end({ service, method, values }: HandlerContext, error: unknown): void {
    const requestId = values.get(REQUEST_ID);
    const tracked = {
      transport: "rpc",
      requestId,
      startedAt: values.get(STARTED_AT),
      facts: values.get(FACTS),
    } as const;
    report({ ...tracked, method: methodOf(service.typeName, method.localName) }, error);
  }

  function connectError(
    error: unknown,
    { values, signal }: Pick<HandlerContext, "values"> & Partial<HandlerContext>,
  ): ConnectError {
    const isLate = signal?.reason instanceof ConnectError && signal.reason.code === Code.DeadlineExceeded;
    if (error instanceof CallerGone && !isLate) return new ConnectError("The caller has gone.", Code.Canceled);
    const failure = error instanceof CallerGone ? new Failure("timed_out") : toFailure(error);
    const requestId = values.get(REQUEST_ID);
    const { row, field, limit, retryAfterMs } = failure;
    const detail = create(FailureDetailSchema, {
      code: row.code ?? "",
      field: field ?? "",
      limit: limit ?? "",
      requestId,
    });
    if (retryAfterMs !== undefined) detail.retryAfterMs = BigInt(Math.ceil(retryAfterMs));
    const metadata =
      retryAfterMs === undefined ? {} : { "retry-after": `${Math.max(1, Math.ceil(retryAfterMs / 1000))}` };
    return new ConnectError(failure.message, row.connect, metadata, [{ desc: FailureDetailSchema, value: detail }]);
  }
}

function callOf({ values, signal, requestHeader }: HandlerContext): RequestContext {
  const caller = values.get(CALLER);
  if (!caller) throw new Failure("unauthenticated");
  const [requestId, startedAt, facts] = [values.get(REQUEST_ID), values.get(STARTED_AT), values.get(FACTS)];
  const key = requestHeader.get("idempotency-key");
  return { requestId, caller, signal, startedAt, facts, notices: [], ...(key === null ? {} : { idempotencyKey: key }) };
}

const METHODS: Record<keyof typeof GenerationService.method, RequestEnd["method"]> = {
  generate: "generate",
  streamGenerate: "stream_generate",
  quotas: "quotas",
  metrics: "metrics",
};

function methodOf(service: string, method: string): RequestEnd["method"] {
  if (service === GenerationService.typeName) return METHODS[method as keyof typeof METHODS];
  return ADMIN_SERVICES.some(({ typeName }) => typeName === service) ? "admin" : "none";
}

function eventMessage(event: GenerateEvent): StreamGenerateResponse {
  switch (event.type) {
    case "open":
      return create(StreamGenerateResponseSchema, { event: { case: "open", value: {} } });
    case "delta":
      return create(StreamGenerateResponseSchema, { event: { case: "delta", value: { text: event.text } } });
    case "trace":
      return create(StreamGenerateResponseSchema, { event: { case: "trace", value: { step: event.step } } });
    case "done":
      return create(StreamGenerateResponseSchema, { event: { case: "done", value: event.done } });
  }
}

function maxBytes(service: DescService): number {
  return service.typeName === GenerationService.typeName ? MAX_BODY : MAX_SMALL_BODY;
}
