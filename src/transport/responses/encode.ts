import {
  FinishReason,
  type GenerateResponse,
  type ToolCall,
  type Usage,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { Failure } from "../../contract/failure.ts";
import { contentOf, noticesJson } from "../call/foreign.ts";
import { inputOfArguments } from "../openai/custom-tools.ts";
import { now } from "../openai/encode.ts";
import { codeOf } from "../openai/failure.ts";
import type { ResponseTerms } from "./decode.ts";

/** The state of a response, beside what its request says. */
export interface ResponseState {
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdAt: number;
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  /** Items as JSON. */
  readonly output: readonly string[];
  readonly finishReason?: FinishReason;
  /** Undefined before the end. */
  readonly usage?: Usage | undefined;
  /** As a JSON list. */
  readonly notices?: string;
  readonly failure?: Failure;
}

/** A response as JSON. It is written by hand, because a stream has it three times. */
export function responseJson(state: ResponseState, { model, echo }: Pick<ResponseTerms, "model" | "echo">): string {
  const { id, createdAt, status, output, usage, notices = "[]", failure, finishReason } = state;
  const completedAt = status === "completed" ? now() : null;
  const error = failure ? JSON.stringify({ code: codeOf(failure), message: failure.message }) : "null";
  const reason = finishReason === FinishReason.CONTENT_FILTER ? "content_filter" : "max_output_tokens";
  const details = status === "incomplete" ? `{"reason":"${reason}"}` : "null";
  return (
    `{"id":${JSON.stringify(id)},"object":"response","created_at":${createdAt},"completed_at":${completedAt},` +
    `"status":"${status}","error":${error},"incomplete_details":${details},"model":${JSON.stringify(model)},` +
    `"output":[${output.join(",")}],"usage":${usage ? usageJson(usage) : "null"},` +
    `"notices":${notices},${echo}}`
  );
}

/** The response to a request without `stream`. */
export function wholeJson(answer: GenerateResponse, terms: ResponseTerms): string {
  const { id, finishReason, usage, toolCalls } = answer;
  const status = statusOf(finishReason);
  const text = contentOf(answer);
  const calls = toolCalls.map((call, index) => {
    const item = callItem(id, { ...call, index }, terms);
    return item.json("completed", item.text);
  });
  const output = text === "" && calls.length > 0 ? calls : [messageItem(id, partJson(text), status), ...calls];
  const state: ResponseState = {
    id,
    createdAt: now(),
    status,
    output,
    finishReason,
    usage,
    notices: noticesJson(answer),
  };
  return responseJson(state, terms);
}

export function statusOf(finishReason: FinishReason): "completed" | "incomplete" {
  return finishReason === FinishReason.STOP || finishReason === FinishReason.TOOL_CALLS ? "completed" : "incomplete";
}

/** The identifier of the message of an answer. */
export function messageId(id: string): string {
  return `msg_${id.slice("gen_".length)}`;
}

/** @param part the text as `partJson` writes it; empty before there is any */
export function messageItem(id: string, part: string, status: ResponseState["status"]): string {
  const head = `"type":"message","id":${JSON.stringify(messageId(id))},"status":"${status}","role":"assistant"`;
  return `{${head},"content":[${part}]}`;
}

export function partJson(text: string): string {
  return `{"type":"output_text","text":${JSON.stringify(text)},"annotations":[],"logprobs":[]}`;
}

/** A call as its item, and what its events have beside it. */
export interface CallItem {
  readonly id: string;
  readonly name: string;
  /** The member with what the tool gets, and the word for it in the names of events. */
  readonly member: "arguments" | "input";
  readonly event: "function_call_arguments" | "custom_tool_call_input";
  readonly text: string;
  /** The item as JSON. */
  json(status: ResponseState["status"], text: string): string;
}

/** @param id of the generation; `call.index` counts its calls from 0 */
export function callItem(
  generation: string,
  call: Pick<ToolCall, "id" | "name" | "arguments"> & { readonly index: number },
  { kinds }: Pick<ResponseTerms, "kinds">,
): CallItem {
  const isCustom = kinds.custom.has(call.name);
  const id = `${generation.replace(/^gen_/, isCustom ? "ctc_" : "fc_")}_${call.index}`;
  const named = kinds.spaces.get(call.name) ?? { name: call.name };
  const type = isCustom ? "custom_tool_call" : "function_call";
  const member = isCustom ? "input" : "arguments";
  return {
    ...{ id, name: call.name, member },
    event: isCustom ? "custom_tool_call_input" : "function_call_arguments",
    text: isCustom ? inputOfArguments(call.arguments) : call.arguments,
    json: (status, text) => JSON.stringify({ type, id, call_id: call.id, ...named, [member]: text, status }),
  };
}

/** A `ResponseUsage` as JSON. */
function usageJson({ inputTokens, outputTokens, cachedTokens, credits }: Usage): string {
  return (
    `{"input_tokens":${inputTokens},"input_tokens_details":{"cached_tokens":${cachedTokens}},` +
    `"output_tokens":${outputTokens},"output_tokens_details":{"reasoning_tokens":0},` +
    `"total_tokens":${inputTokens + outputTokens},"credits":${credits}}`
  );
}
