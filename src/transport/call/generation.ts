import type {
  GenerateRequest,
  GenerationService,
  MetricsRequest,
  RecordOutcomeRequest,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { ReadRequest } from "../../generate/read-request.ts";
import type { Run } from "./call.ts";
import { callerOf } from "./identity.ts";
import type { Services } from "./services.ts";

/** Creates the functions that run the methods of callers, whatever the format. */
export function runGeneration({
  generation,
  recordOutcome,
  quotas,
  metrics,
}: Pick<Services, "generation" | "recordOutcome" | "quotas" | "metrics">): Record<
  keyof typeof GenerationService.method,
  Run
> {
  return {
    generate: ({ request }, call) => generation.generateWhole(request as GenerateRequest | ReadRequest, call.context()),
    streamGenerate: ({ request }, call) =>
      generation.generate(request as GenerateRequest | ReadRequest, call.context(), true),
    recordOutcome: ({ request }, { identity }) => recordOutcome(request as RecordOutcomeRequest, callerOf(identity)),
    quotas: (_, { identity }) => quotas(callerOf(identity)),
    metrics: ({ request }, { identity }) => metrics(request as MetricsRequest, callerOf(identity)),
  };
}
