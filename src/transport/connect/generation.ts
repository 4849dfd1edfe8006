import { create } from "@bufbuild/protobuf";
import {
  type GenerationService,
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { GenerateEvent } from "../../service/request-context.ts";
import type { Services } from "../../service/services.ts";
import { callerOf } from "../call/tracked-request.ts";
import { callContext } from "./call.ts";
import type { Handlers } from "./method.ts";

/** Creates the handlers of the callers' service. */
export function createGenerationHandlers({
  generation,
  quotas,
  metrics,
}: Pick<Services, "generation" | "quotas" | "metrics">): Handlers<typeof GenerationService> {
  return {
    generate: async (request, call) => generation.generateWhole(request, callContext(call)),
    streamGenerate: (request, call) => ({
      events: generation.generate(request, callContext(call), true),
      toMessage: eventMessage,
    }),
    quotas: async (_, { identity }) => quotas(callerOf(identity)),
    metrics: async (request, { identity }) => metrics(request, callerOf(identity)),
  };
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
