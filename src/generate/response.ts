import { create } from "@bufbuild/protobuf";
import {
  FinishReasonSchema,
  type GenerateResponse,
  GenerateResponseSchema,
  type StreamGenerateResponse_Done,
  StreamGenerateResponse_DoneSchema,
  type StreamGenerateResponse_ToolCall,
  StreamGenerateResponse_ToolCallSchema,
  UsageSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Settlement } from "../admission/lease.ts";
import { numberOf } from "../contract/json-names.ts";
import type { Finish } from "../engine/answer.ts";
import type { Trace } from "../engine/trace.ts";
import { type Traced, traceMessage } from "../runs/trace-message.ts";
import type { TotalCost } from "./costs.ts";
import type { Progress } from "./progress.ts";
import type { RequestContext, Take } from "./request-context.ts";
import type { CheckedRequest } from "./validate-request.ts";

/** Passes the events of a stored response on, under the identifier of the new request. @throws CallerGone */
export async function replay(
  { $typeName: _, answer, toolCalls, latencyMs: __, ...rest }: GenerateResponse,
  { requestId }: RequestContext,
  take: Take,
): Promise<void> {
  if (answer !== "") await take({ type: "delta", text: answer });
  for (const [index, { $typeName: _, ...call }] of toolCalls.entries())
    await take({ type: "tool_call", call: create(StreamGenerateResponse_ToolCallSchema, { index, ...call }) });
  await take({ type: "done", done: create(StreamGenerateResponse_DoneSchema, { ...rest, requestId }) });
}

/** Builds the response of a unary request from its text, its calls and its last event. */
export function fold(
  { text: answer, calls }: { text: string; calls: readonly StreamGenerateResponse_ToolCall[] },
  { $typeName: _, ...done }: StreamGenerateResponse_Done,
  context: RequestContext,
): GenerateResponse {
  const latencyMs = Math.round(performance.now() - context.startedAt);
  const toolCalls = calls.map(({ id, name, arguments: given }) => ({ id, name, arguments: given }));
  return create(GenerateResponseSchema, { ...done, answer, toolCalls, latencyMs });
}

/** Why an answer ended, in the word that the caller and the ledger get. */
export function finishWord(finish: Finish | undefined): NonNullable<Settlement["finishReason"]> {
  if (finish?.reason === "filtered") return "content_filter";
  if (finish?.reason === "calls") return "tool_calls";
  return finish?.reason === "stop" ? "stop" : "length";
}

/** The last event of an answer. */
export function doneMessage(
  progress: Progress,
  { credits, outputTokens, cost }: { credits: number; outputTokens: number; cost: TotalCost },
): StreamGenerateResponse_Done {
  const { id, checked, choice, context, finish, input, notices, trace } = progress;
  const { inputTokens } = input;
  return create(StreamGenerateResponse_DoneSchema, {
    id,
    requestId: context.requestId,
    usage: create(UsageSchema, { inputTokens, outputTokens, cachedTokens: cachedTokens(progress), credits }),
    finishReason: numberOf(FinishReasonSchema, finishWord(finish)),
    ...(finish?.reason === "stop" && finish.stop !== undefined ? { stopSequence: finish.stop } : {}),
    notices,
    ...structuredOf(checked, finish),
    ...(checked.trace && trace ? { intelligenceTrace: traceMessage(tracedOf(trace, choice, cost)) } : {}),
  });
}

/** A vendor counts with its own tokenizer, so its figure can exceed the input tokens. */
export function cachedTokens({ finish, input }: Progress): number {
  return Math.min(finish?.cachedTokens ?? 0, input.inputTokens);
}

/** The fields of the two JSON modes; none for a text answer. */
function structuredOf(
  { shape }: CheckedRequest,
  finish: Finish | undefined,
): { structured?: string; structuredError?: string } {
  if (shape === "text") return {};
  if (finish?.reason === "calls") return { structured: "null" };
  const { structured, structuredError } = finish ?? {};
  if (structured === undefined)
    return { structured: "null", structuredError: "The answer was cut short before it was complete." };
  return { structured, ...(structuredError === undefined ? {} : { structuredError }) };
}

function tracedOf(trace: Trace, { level, reasons }: Progress["choice"], cost: TotalCost): Traced {
  const tokens = { inputTokens: BigInt(cost.inputTokens), outputTokens: BigInt(cost.outputTokens) };
  return { level, reasons, steps: trace.steps, agreement: trace.agreement, models: cost.models, ...tokens };
}
