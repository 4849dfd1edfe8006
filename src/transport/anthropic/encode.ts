import { create } from "@bufbuild/protobuf";
import { FinishReason, type GenerateResponse, type Usage } from "../../../gen/chorus/v1/generation_pb.js";
import {
  MessageAnswerSchema,
  MessageRole,
  MessageStopReason,
  type MessageUsage,
  MessageUsageSchema,
} from "../../../gen/chorus/v1/messages_pb.js";
import { contentOf, noticesOf } from "../call/foreign.ts";
import type { ForeignTerms } from "../call/format.ts";
import { encode } from "../rest/encode.ts";

const STOPS: Readonly<Record<FinishReason, MessageStopReason>> = {
  [FinishReason.UNSPECIFIED]: MessageStopReason.UNSPECIFIED,
  [FinishReason.STOP]: MessageStopReason.END_TURN,
  [FinishReason.LENGTH]: MessageStopReason.MAX_TOKENS,
  [FinishReason.CONTENT_FILTER]: MessageStopReason.REFUSAL,
  [FinishReason.TOOL_CALLS]: MessageStopReason.TOOL_USE,
};

export function messageJson(answer: GenerateResponse, { model }: ForeignTerms): string {
  const text = contentOf(answer);
  const calls = answer.toolCalls.map(({ id, name, arguments: input }) => ({ type: "tool_use", id, name, input }));
  const message = create(MessageAnswerSchema, {
    id: answer.id,
    type: "message",
    role: MessageRole.ASSISTANT,
    model,
    content: text === "" ? calls : [{ type: "text", text }, ...calls],
    ...stopOf(answer),
    usage: usageOf(answer),
    notices: noticesOf(answer),
  });
  return encode(MessageAnswerSchema, message);
}

/** Why an answer ended, and the stop sequence that ended it, if one did. */
export function stopOf({ finishReason, stopSequence }: Pick<GenerateResponse, "finishReason" | "stopSequence">) {
  if (stopSequence === undefined) return { stopReason: STOPS[finishReason] };
  return { stopReason: MessageStopReason.STOP_SEQUENCE, stopSequence };
}

/** In Anthropic's format, the input without its cached part, and this part. */
export function usageOf({ usage }: { readonly usage?: Usage | undefined }): MessageUsage {
  const { inputTokens = 0, outputTokens = 0, cachedTokens = 0, credits = 0 } = usage ?? {};
  return create(MessageUsageSchema, {
    inputTokens: inputTokens - cachedTokens,
    cacheReadInputTokens: cachedTokens,
    outputTokens,
    credits,
  });
}
