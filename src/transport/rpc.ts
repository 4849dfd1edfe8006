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
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
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
import { errorFacts, type Log } from "../log.ts";
import { type Call, CallerGone, type Event } from "../service/call.ts";
import type { Services } from "../service/services.ts";
import { MAX_BODY } from "./body.ts";
import { addReflection } from "./reflection.ts";

type NodeRequest = IncomingMessage | Http2ServerRequest;

const REQUEST_ID = createContextKey("");
const STARTED_AT = createContextKey(0);
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
export function createRpcHandler(services: Services, config: Pick<Config, "stream">, log: Log): RequestListener {
  return connectNodeAdapter({
    routes,
    readMaxBytes: MAX_BODY,
    contextValues: (request) => {
      const requestId = `req_${randomUUID().replaceAll("-", "")}`;
      return createContextValues().set(REQUEST_ID, requestId).set(STARTED_AT, performance.now()).set(REQUEST, request);
    },
    // Runs before anything of the body is read.
    requestGate: (context) => guarded(context, () => admit(context)),
  });

  function routes(router: ConnectRouter): void {
    router.service(GenerationService, {
      generate: (request, context) =>
        guarded(context, () => services.generation.generateWhole(request, callOf(context))),
      async *streamGenerate(request, context) {
        const stall = stallGuard(context, config.stream.stallMs);
        try {
          for await (const event of services.generation.generate(request, callOf(context), true)) {
            stall.start();
            yield eventMessage(event);
            stall.stop();
          }
        } catch (error) {
          throw connectError(error, context);
        } finally {
          stall.stop();
        }
      },
      quotas: (_, context) => guarded(context, () => services.quotas(callOf(context).caller)),
      metrics: (request, context) => guarded(context, () => services.metrics(request, callOf(context).caller)),
    });
    router.service(KeyService, {
      createKey: (request, context) => guarded(context, () => services.keys.createKey(request)),
      listKeys: (request, context) => guarded(context, () => services.keys.listKeys(request)),
      revokeKey: (request, context) => guarded(context, () => services.keys.revokeKey(request)),
    });
    addHealth(router, services);
    addReflection(router, [GenerationService, KeyService, Health]);
  }

  async function admit(context: HandlerContext): Promise<void> {
    const { requestHeader, responseHeader, values, service, method } = context;
    responseHeader.set("x-request-id", values.get(REQUEST_ID));
    if (service.typeName === GenerationService.typeName) {
      const scope = SCOPES[method.localName as keyof typeof SCOPES];
      values.set(CALLER, await services.authorize(requestHeader.get("x-api-key") ?? undefined, scope));
    } else if (service.typeName === KeyService.typeName) {
      await services.authorizeOperator(/^bearer (.+)$/i.exec(requestHeader.get("authorization") ?? "")?.[1]);
    }
    if (Number(requestHeader.get("content-length") ?? 0) > MAX_BODY) throw new Failure("request_too_large");
  }

  async function guarded<T>(context: HandlerContext, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw connectError(error, context);
    }
  }

  function connectError(error: unknown, { values }: HandlerContext): ConnectError {
    if (error instanceof CallerGone) return new ConnectError("The caller has gone.", Code.Canceled);
    const failure = toFailure(error);
    const requestId = values.get(REQUEST_ID);
    if (failure.row.http >= 500 && failure.cause !== undefined) {
      log.warn({ request_id: requestId, failure: failure.kind, cause: errorFacts(failure.cause) }, "request failed");
    }
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

function callOf({ values, signal }: HandlerContext): Call {
  const caller = values.get(CALLER);
  if (!caller) throw new Failure("unauthenticated");
  return { requestId: values.get(REQUEST_ID), caller, signal, startedAt: values.get(STARTED_AT), notices: [] };
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

/** `grpc.health.v1`, for the whole service (the empty name) and for the callers' service. */
function addHealth(router: ConnectRouter, services: Services): void {
  const names = ["", GenerationService.typeName];
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
