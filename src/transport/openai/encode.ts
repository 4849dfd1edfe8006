import {
  type FinishReason,
  FinishReasonSchema,
  type GenerateResponse,
  type Notice,
  type ToolCall,
  type Usage,
} from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../contract/json-names.ts";
import { contentOf, noticesJson } from "../call/foreign.ts";
import { inputOfArguments } from "./custom-tools.ts";
import type { ChatTerms } from "./decode.ts";

/** The part of an answer that both kinds of response have. */
export interface Ended {
  finishReason: FinishReason;
  usage?: Usage | undefined;
  notices: Notice[];
  structuredError?: string | undefined;
}

/** A `ChatCompletion` as JSON. It is written by hand, because a message would be made of it first. */
export function completionJson(answer: GenerateResponse, { model, custom }: ChatTerms): string {
  const calls = answer.toolCalls.map((call) => JSON.stringify(callOf(call, custom)));
  const toolCalls = calls.length === 0 ? "" : `,"tool_calls":[${calls.join(",")}]`;
  const message = `{"role":"assistant","content":${JSON.stringify(contentOf(answer))},"refusal":null${toolCalls}}`;
  return (
    `{"id":${JSON.stringify(answer.id)},"object":"chat.completion","created":${now()},` +
    `"model":${JSON.stringify(model)},` +
    `"choices":[{"index":0,"message":${message},"logprobs":null,"finish_reason":${finishJson(answer)}}],` +
    `"usage":${usageJson(answer)},"notices":${noticesJson(answer)}}`
  );
}

export function finishJson({ finishReason }: Pick<Ended, "finishReason">): string {
  return JSON.stringify(wordOf(FinishReasonSchema, finishReason));
}

/** A call as its format has it. @param custom names of the tools that take text */
export function callOf(call: Pick<ToolCall, "id" | "name" | "arguments">, custom: ReadonlySet<string>) {
  const { id, name, arguments: text } = call;
  if (custom.has(name)) return { id, type: "custom", custom: { name, input: inputOfArguments(text) } };
  return { id, type: "function", function: { name, arguments: text } };
}

/** Seconds since 1970. */
export function now(): number {
  return Math.floor(Date.now() / 1_000);
}

/** A `ChatUsage` as JSON. */
export function usageJson({ usage }: Pick<Ended, "usage">): string {
  const { inputTokens = 0, outputTokens = 0, cachedTokens = 0, credits = 0 } = usage ?? {};
  return (
    `{"prompt_tokens":${inputTokens},"completion_tokens":${outputTokens},` +
    `"total_tokens":${inputTokens + outputTokens},"prompt_tokens_details":{"cached_tokens":${cachedTokens}},` +
    `"credits":${credits}}`
  );
}
