import { FinishReason, type GenerateResponse, type Usage } from "../../../gen/chorus/v1/generation_pb.js";
import { MessageStopReason, MessageStopReasonSchema } from "../../../gen/chorus/v1/messages_pb.js";
import { wordOf } from "../../contract/json-names.ts";
import { contentOf, noticesJson } from "../call/foreign.ts";
import type { ForeignTerms } from "../call/format.ts";

const STOPS: Readonly<Record<FinishReason, MessageStopReason>> = {
  [FinishReason.UNSPECIFIED]: MessageStopReason.UNSPECIFIED,
  [FinishReason.STOP]: MessageStopReason.END_TURN,
  [FinishReason.LENGTH]: MessageStopReason.MAX_TOKENS,
  [FinishReason.CONTENT_FILTER]: MessageStopReason.REFUSAL,
  [FinishReason.TOOL_CALLS]: MessageStopReason.TOOL_USE,
};

/** A `MessageAnswer` as JSON. It is written by hand, because a message would be made of it first. */
export function messageJson(answer: GenerateResponse, { model }: ForeignTerms): string {
  const text = contentOf(answer);
  const blocks = answer.toolCalls.map(
    ({ id, name, arguments: input }) =>
      `{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":${input}}`,
  );
  if (text !== "") blocks.unshift(`{"type":"text","text":${JSON.stringify(text)}}`);
  return (
    `{"id":${JSON.stringify(answer.id)},"type":"message","role":"assistant","model":${JSON.stringify(model)},` +
    `"content":[${blocks.join(",")}],${stopJson(answer)},"usage":${usageJson(answer)},` +
    `"notices":${noticesJson(answer)}}`
  );
}

/** Why an answer ended, and the stop sequence that ended it, if one did, as members of JSON. */
export function stopJson({ finishReason, stopSequence }: Pick<GenerateResponse, "finishReason" | "stopSequence">) {
  const reason = stopSequence === undefined ? STOPS[finishReason] : MessageStopReason.STOP_SEQUENCE;
  const word = JSON.stringify(wordOf(MessageStopReasonSchema, reason));
  return `"stop_reason":${word},"stop_sequence":${JSON.stringify(stopSequence ?? null)}`;
}

/** A `MessageUsage` as JSON. In Anthropic's format, the input is without its cached part. */
export function usageJson({ usage }: { readonly usage?: Usage | undefined }): string {
  const { inputTokens = 0, outputTokens = 0, cachedTokens = 0, credits = 0 } = usage ?? {};
  return (
    `{"input_tokens":${inputTokens - cachedTokens},"cache_creation_input_tokens":0,` +
    `"cache_read_input_tokens":${cachedTokens},"output_tokens":${outputTokens},"credits":${credits}}`
  );
}
