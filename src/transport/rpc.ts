import { randomUUID } from "node:crypto";
import type { IncomingMessage, RequestListener } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import {
  GenerationService,
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import type { Caller, Scope } from "../admission/keys.ts";
import type { Config } from "../config.ts";
import { Failure, toFailure } from "../failure.ts";
import type { Log } from "../log.ts";
import { type Call, CallerGone, type Event, type Facts } from "../service/call.ts";
import type { Services } from "../service/services.ts";
import type { RequestEnd, Telemetry } from "../telemetry.ts";
import { ADMIN_SERVICES, addAdmin, admitActor } from "./admin.ts";
import { MAX_BODY } from "./body.ts";
import { addReflection } from "./reflection.ts";
import { createReport } from "./report.ts";

type NodeRequest = IncomingMessage | Http2ServerRequest;

const REQUEST_ID = createContextKey("");
const STARTED_AT = createContextKey(0);
const FACTS = createContextKey<Facts>({});
const CALLER = createContextKey<Caller | undefined>(undefined);
const REQUEST = createContextKey<NodeRequest | undefined>(undefined);

/** Scope that each method of the callers' service needs. */
const SCOPES: Record<keyof typeof GenerationService.method, Scope> = {
  generate: "generate",
  streamGenerate: "generate",
  quotas: "metrics",
  metrics: "metrics",
};

/** How often a health watch looks for a change, in milliseconds. */
const WATCH_MS = 250;

/**
 * The internal face: Connect, gRPC and gRPC-Web for callers and operators, with reflection and health. Works for HTTP/1.1 and HTTP/2.
 */
export function createRpcHandler(
  services: Services,
  config: Pick<Config, "stream">,
  log: Log,
  telemetry: Telemetry,
): RequestListener {
  const report = createReport(log, telemetry);
  return connectNodeAdapter({
    routes,
    readMaxBytes: MAX_BODY,
    contextValues: (request) => {
      const requestId = `req_${randomUUID().replaceAll("-", "")}`;
      return createContextValues()
        .set(REQUEST_ID, requestId)
        .set(STARTED_AT, performance.now())
        .set(FACTS, {})
        .set(REQUEST, request);
    },
    // Runs before anything of the body is read.
    requestGate: (context) =>
      admit(context).catch((error: unknown) => {
        end(context, error);
        throw connectError(error, context);
      }),
  });

  function routes(router: ConnectRouter): void {
    router.service(GenerationService, {
      generate: (request, context) =>
        guarded(context, () => services.generation.generateWhole(request, callOf(context))),
      async *streamGenerate(request, context) {
        const stall = stallGuard(context, config.stream.stallMs);
        let failure: unknown;
        try {
          for await (const event of services.generation.generate(request, callOf(context), true)) {
            stall.start();
            yield eventMessage(event);
            stall.stop();
          }
        } catch (error) {
          failure = error;
          throw connectError(error, context);
        } finally {
          stall.stop();
          end(context, failure);
        }
      },
      quotas: (_, context) => guarded(context, () => services.quotas(callOf(context).caller)),
      metrics: (request, context) => guarded(context, () => services.metrics(request, callOf(context).caller)),
    });
    addAdmin(router, services, guarded);
    addHealth(router, services);
    addReflection(router, [GenerationService, ...ADMIN_SERVICES, Health]);
  }

  async function admit(context: HandlerContext): Promise<void> {
    const { requestHeader, responseHeader, values, service, method } = context;
    responseHeader.set("x-request-id", values.get(REQUEST_ID));
    if (service.typeName === GenerationService.typeName) {
      const scope = SCOPES[method.localName as keyof typeof SCOPES];
      const caller = await services.authorize(requestHeader.get("x-api-key") ?? undefined, scope);
      Object.assign(values.get(FACTS), { workspaceId: caller.workspaceId, keyId: caller.keyId });
      values.set(CALLER, caller);
    } else await admitActor(services, context);
    if (Number(requestHeader.get("content-length") ?? 0) > MAX_BODY) throw new Failure("request_too_large");
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

  function connectError(error: unknown, { values }: HandlerContext): ConnectError {
    if (error instanceof CallerGone) return new ConnectError("The caller has gone.", Code.Canceled);
    const failure = toFailure(error);
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

function callOf({ values, signal, requestHeader }: HandlerContext): Call {
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

function eventMessage(event: Event): StreamGenerateResponse {
  switch (event.type) {
    case "delta":
      return create(StreamGenerateResponseSchema, { event: { case: "delta", value: { text: event.text } } });
    case "trace":
      return create(StreamGenerateResponseSchema, { event: { case: "trace", value: { step: event.step } } });
    case "done":
      return create(StreamGenerateResponseSchema, { event: { case: "done", value: event.done } });
  }
}

/** Ends the connection of a reader that takes nothing for `stallMs`; the stream then ends as if the reader had closed it. */
function stallGuard({ values }: HandlerContext, stallMs: number): { start(): void; stop(): void } {
  const request = values.get(REQUEST);
  let timer: NodeJS.Timeout | undefined;
  const end = () => (request && "stream" in request ? request.stream.destroy() : request?.socket.destroy());
  return {
    start() {
      timer = setTimeout(end, stallMs);
    },
    stop() {
      clearTimeout(timer);
    },
  };
}

/** `grpc.health.v1`, for the whole process (the empty name) and for each service; they are ready together. */
function addHealth(router: ConnectRouter, services: Services): void {
  const names = ["", ...[GenerationService, ...ADMIN_SERVICES].map(({ typeName }) => typeName)];
  const now = () => (services.ready() ? Status.SERVING : Status.NOT_SERVING);
  router.service(Health, {
    check({ service }) {
      if (!names.includes(service)) throw new ConnectError("There is no such service.", Code.NotFound);
      return { status: now() };
    },
    list: () => ({ statuses: Object.fromEntries(names.map((name) => [name, { status: now() }])) }),
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      while (!signal.aborted) {
        const status = names.includes(service) ? now() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await new Promise((resolve) => setTimeout(resolve, WATCH_MS));
      }
    },
  });
}
