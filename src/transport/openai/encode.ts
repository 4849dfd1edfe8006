import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ChatCompletionSchema, type ChatUsage, ChatUsageSchema } from "../../../gen/chorus/v1/chat_pb.js";
import {
  type FinishReason,
  type GenerateResponse,
  type Notice,
  Role,
  type ToolCall,
  type Usage,
} from "../../../gen/chorus/v1/generation_pb.js";
import { contentOf, noticesOf } from "../call/foreign.ts";
import { encode } from "../rest/encode.ts";
import { inputOfArguments } from "./custom-tools.ts";
import type { ChatTerms } from "./decode.ts";

/** The part of an answer that both kinds of response have. */
export interface Ended {
  finishReason: FinishReason;
  usage?: Usage | undefined;
  notices: Notice[];
  structuredError?: string | undefined;
}

export function completionJson(answer: GenerateResponse, { model, custom }: ChatTerms): string {
  const toolCalls = answer.toolCalls.map((call) => callOf(call, custom));
  const message = { role: Role.ASSISTANT, content: contentOf(answer), toolCalls };
  const completion: MessageInitShape<typeof ChatCompletionSchema> = {
    id: answer.id,
    object: "chat.completion",
    created: now(),
    model,
    choices: [{ message, finishReason: answer.finishReason }],
    usage: usageOf(answer),
    notices: noticesOf(answer),
  };
  return encode(ChatCompletionSchema, create(ChatCompletionSchema, completion));
}

/** A call as its format has it. @param custom names of the tools that take text */
export function callOf(call: Pick<ToolCall, "id" | "name" | "arguments">, custom: ReadonlySet<string>) {
  const { id, name, arguments: text } = call;
  if (custom.has(name)) return { id, type: "custom", custom: { name, input: inputOfArguments(text) } };
  return { id, type: "function", function: { name, arguments: text } };
}

/** Seconds since 1970. */
export function now(): bigint {
  return BigInt(Math.floor(Date.now() / 1_000));
}

export function usageOf({ usage }: Ended): ChatUsage {
  const { inputTokens = 0, outputTokens = 0, cachedTokens = 0, credits = 0 } = usage ?? {};
  return create(ChatUsageSchema, {
    promptTokens: inputTokens,
    completionTokens: outputTokens,
    totalTokens: inputTokens + outputTokens,
    promptTokensDetails: { cachedTokens },
    credits,
  });
}
