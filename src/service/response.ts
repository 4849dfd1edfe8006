import { create } from "@bufbuild/protobuf";
import {
  Effort,
  FinishReason,
  type GenerateResponse,
  GenerateResponseSchema,
  type IntelligenceTrace,
  IntelligenceTraceSchema,
  StepKindSchema,
  StepOutcomeSchema,
  StepRoleSchema,
  type StreamGenerateResponse_Done,
  StreamGenerateResponse_DoneSchema,
  type TraceStep,
  TraceStepSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { ModelCost } from "../admission/lease.ts";
import type { Finish } from "../engine/answer.ts";
import type { TimedStep, Trace } from "../engine/trace.ts";
import { numberOf } from "../json-names.ts";
import type { Level } from "../terms.ts";
import type { GenerateEvent, RequestContext } from "./request-context.ts";
import type { CheckedRequest } from "./validate-request.ts";

/** The events of an answer that was given before. */
export function* replay(
  { $typeName: _, answer, latencyMs: __, ...rest }: GenerateResponse,
  { requestId }: RequestContext,
): Generator<GenerateEvent> {
  yield { type: "delta", text: answer };
  yield { type: "done", done: create(StreamGenerateResponse_DoneSchema, { ...rest, requestId }) };
}

/** The whole answer as one response. */
export function fold(
  answer: string,
  { $typeName: _, ...done }: StreamGenerateResponse_Done,
  call: RequestContext,
): GenerateResponse {
  const latencyMs = Math.round(performance.now() - call.startedAt);
  return create(GenerateResponseSchema, { ...done, answer, latencyMs });
}

/** Why an answer ended, as the caller and the books know it. */
export function finishWord(finish: Finish | undefined): "stop" | "length" {
  return finish?.reason === "stop" ? "stop" : "length";
}

export function finishReason(finish: Finish | undefined): FinishReason {
  return finishWord(finish) === "stop" ? FinishReason.STOP : FinishReason.LENGTH;
}

/** The members of the two JSON modes; none for a text answer. */
export function structuredOf(
  { shape }: CheckedRequest,
  finish: Finish | undefined,
): { structured?: string; structuredError?: string } {
  if (shape === "text") return {};
  return {
    structured: finish?.structured ?? "null",
    ...(finish?.structured === undefined
      ? { structuredError: "The answer was cut short before it was whole." }
      : finish.structuredError === undefined
        ? {}
        : { structuredError: finish.structuredError }),
  };
}

const LEVELS: Record<Level, Effort> = { low: Effort.LOW, medium: Effort.MEDIUM, high: Effort.HIGH };

/** The trace as the caller gets it. Roles only: no name of a model or a vendor is ever in here. */
export function traceMessage(
  trace: Trace,
  level: Level,
  reasons: string[],
  cost: ModelCost & { models: number },
): IntelligenceTrace {
  const { agreement, ...sums } = trace.sums();
  return create(IntelligenceTraceSchema, {
    intelligenceLevel: LEVELS[level],
    reasons,
    models: cost.models,
    ...(agreement === undefined ? {} : { agreement }),
    ...sums,
    internalInputTokens: BigInt(cost.inputTokens),
    internalOutputTokens: BigInt(cost.outputTokens),
    steps: trace.steps.map(stepMessage),
  });
}

export function stepMessage({ kind, role, durationMs, outcome, detail, ...step }: TimedStep): TraceStep {
  return create(TraceStepSchema, {
    ...step,
    kind: numberOf(StepKindSchema, kind),
    role: numberOf(StepRoleSchema, role),
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(outcome === undefined ? {} : { outcome: numberOf(StepOutcomeSchema, outcome) }),
    ...(detail === undefined ? {} : { detail }),
  });
}
