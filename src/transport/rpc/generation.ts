import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type GenerateRequest,
  type GenerationService,
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { GenerateEvent } from "../../service/request-context.ts";
import type { Services } from "../../service/services.ts";
import { callerOf } from "../tracked-request.ts";
import type { Reporting } from "./reporting.ts";
import { REQUEST, requestContext } from "./request.ts";

/** Creates the handlers of the callers' service. */
export function createGenerationHandlers(
  { generation, quotas, metrics }: Pick<Services, "generation" | "quotas" | "metrics">,
  { unary, end, connectError }: Reporting,
): ServiceImpl<typeof GenerationService> {
  const caller = ({ values }: HandlerContext) => callerOf(values.get(REQUEST).identity);
  return {
    generate: (request, context) =>
      unary(context, async () => generation.generateWhole(await receivedOr(request, context), requestContext(context))),
    async *streamGenerate(request, context) {
      let failure: unknown;
      try {
        const received = await receivedOr(request, context);
        for await (const event of generation.generate(received, requestContext(context), true))
          yield eventMessage(event);
      } catch (error) {
        failure = error;
        throw connectError(error, context);
      } finally {
        end(context, failure);
      }
    },
    quotas: (_, context) => unary(context, () => quotas(caller(context))),
    metrics: (request, context) => unary(context, () => metrics(request, caller(context))),
  };
}

/** A large request that a thread reads instead of Connect, or the request that Connect has read. */
function receivedOr(request: GenerateRequest, { values }: HandlerContext) {
  return values.get(REQUEST).received ?? request;
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
