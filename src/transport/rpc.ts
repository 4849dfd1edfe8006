import { randomUUID } from "node:crypto";
import type { RequestListener } from "node:http";
import { create, type DescService } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import {
  GenerationService,
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import type { Caller, Scope } from "../admission/keys.ts";
import type { Config } from "../config.ts";
import { Failure, toFailure } from "../failure.ts";
import { errorFacts, type Log } from "../log.ts";
import { type Call, CallerGone, type Event } from "../service/call.ts";
import type { Services } from "../service/services.ts";
import { createBodyBudget, MAX_BODY } from "./body.ts";
import { serveHandlers, tooLarge } from "./connect-http.ts";
import { addHealth } from "./health.ts";
import { addReflection } from "./reflection.ts";

const REQUEST_ID = createContextKey("");
const STARTED_AT = createContextKey(0);
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

/**
 * The internal face: Connect, gRPC and gRPC-Web for callers and operators, with reflection and health. Works for HTTP/1.1 and HTTP/2.
 * Nothing is compressed, so that the bytes on the wire are those that are held.
 */
export function createRpcHandler(
  services: Services,
  config: Pick<Config, "bodyBudgetBytes" | "stream">,
  log: Log,
): RequestListener {
  const router = createConnectRouter({
    acceptCompression: [],
    readMaxBytes: MAX_BODY,
    // Runs before anything of the body is read.
    requestGate: (context) => guarded(context, () => admit(context)),
  });
  router.service(GenerationService, {
    generate: (request, context) => guarded(context, () => services.generation.generateWhole(request, callOf(context))),
    async *streamGenerate(request, context) {
      try {
        for await (const event of services.generation.generate(request, callOf(context), true))
          yield eventMessage(event);
      } catch (error) {
        throw connectError(error, context);
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
  addHealth(router, [GenerationService], services.ready);
  addReflection(router, [GenerationService, KeyService, Health], [FailureDetailSchema.file]);

  return serveHandlers(router.handlers, {
    maxBytes: ({ service }) => maxBytes(service),
    budget: createBodyBudget(config.bodyBudgetBytes),
    newRequestId: () => `req_${randomUUID().replaceAll("-", "")}`,
    values: (requestId) => createContextValues().set(REQUEST_ID, requestId).set(STARTED_AT, performance.now()),
    refusal: (error, values) => connectError(error, { values }),
    stallMs: config.stream.stallMs,
    log,
  });

  async function admit({ requestHeader, values, service, method }: HandlerContext): Promise<void> {
    if (service.typeName === GenerationService.typeName) {
      const scope = SCOPES[method.localName as keyof typeof SCOPES];
      values.set(CALLER, await services.authorize(requestHeader.get("x-api-key") ?? undefined, scope));
    } else if (service.typeName === KeyService.typeName) {
      await services.authorizeOperator(/^bearer (.+)$/i.exec(requestHeader.get("authorization") ?? "")?.[1]);
    }
    const max = maxBytes(service);
    if (Number(requestHeader.get("content-length") ?? 0) > max) throw tooLarge(max);
  }

  async function guarded<T>(context: HandlerContext, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw connectError(error, context);
    }
  }

  function connectError(
    error: unknown,
    { values, signal }: Pick<HandlerContext, "values"> & Partial<HandlerContext>,
  ): ConnectError {
    const isLate = signal?.reason instanceof ConnectError && signal.reason.code === Code.DeadlineExceeded;
    if (error instanceof CallerGone && !isLate) return new ConnectError("The caller has gone.", Code.Canceled);
    const failure = error instanceof CallerGone ? new Failure("timed_out") : toFailure(error);
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

function maxBytes(service: DescService): number {
  return service.typeName === GenerationService.typeName ? MAX_BODY : MAX_SMALL_BODY;
}
