import { member, parseJson, stringifyJson } from "../../contract/json.ts";
import type { EndReason } from "../port/model.ts";
import { ModelError, unreadable } from "../port/model-error.ts";
import { type Collector, tokenCount } from "./collector.ts";
import {
  endReason,
  frameFailure,
  type JsonObject,
  looseObject,
  object,
  parseObject,
  type WireError,
  wordsOf,
} from "./wire.ts";

/** Name of the tool that takes a schema for which there is no strict mode. */
export const ANSWER_TOOL = "answer";

/** Reads an event of a stream. */
export function readEvent(data: string, into: Collector): void {
  const json = parseObject(data);
  switch (json.type) {
    case "message_start":
      into.identify(object(json.message).model);
      readUsage(object(object(json.message).usage), into);
      return;
    case "content_block_start":
      readBlock(object(json.content_block), into);
      if (into.takesCalls) beginCall(json.index, object(json.content_block), into);
      else into.toolInput = isAnswerTool(object(json.content_block)) ? "empty" : "none";
      return;
    case "content_block_delta":
      readBlock(object(json.delta), into);
      if (into.takesCalls) readCall(json.index, object(json.delta), into);
      else readInput(object(json.delta), into);
      return;
    case "content_block_stop":
      // The input of a tool without parameters has no deltas.
      if (into.toolInput === "empty") into.write("{}");
      return;
    case "message_delta":
      readEnd(object(json.delta), into);
      readUsage(object(json.usage), into);
      return;
    case "message_stop":
      into.isWhole = true;
      return;
    default:
      // Some proxies leave out the type of an error.
      if (json.type === "error" || json.error) throw frameError(json.error);
  }
}

/** Reads a whole reply. */
export function readWhole(body: string, into: Collector): void {
  const json = parseObject(body);
  if (json.type === "error" || json.error) throw frameError(json.error);
  if (!Array.isArray(json.content)) throw unreadable();
  for (const [at, block] of json.content.entries()) {
    readBlock(object(block), into);
    const { type, name } = object(block);
    if (into.takesCalls && type === "tool_use") into.writeCall(at, { name, text: inputText(body, at) });
    if (into.takesCalls || !isAnswerTool(object(block))) continue;
    into.toolInput = "begun";
    into.write(inputText(body, at));
  }
  into.identify(json.model);
  readEnd(json, into);
  readUsage(object(json.usage), into);
  into.isWhole = true;
}

/** Reads the body of a failed reply. */
export function readError(body: string): WireError {
  return describe(object(looseObject(body).error));
}

function isAnswerTool({ type, name }: JsonObject): boolean {
  return type === "tool_use" && name === ANSWER_TOOL;
}

/** Reads a part of the tool's input, which is JSON text. */
function readInput({ type, partial_json: text }: JsonObject, into: Collector): void {
  if (into.toolInput === "none" || type !== "input_json_delta" || !text) return;
  into.toolInput = "begun";
  into.write(text);
}

function beginCall(index: unknown, { type, name, id, input }: JsonObject, into: Collector): void {
  if (type !== "tool_use") return;
  // The input follows in deltas. Some proxies send it at once.
  const isWhole = Object.keys(object(input)).length > 0;
  into.writeCall(index, { id, name, text: isWhole ? JSON.stringify(input) : "" });
}

function readCall(index: unknown, { type, partial_json: text }: JsonObject, into: Collector): void {
  if (type === "input_json_delta") into.writeCall(index, { text });
}

/** The input of a tool in a whole answer, as the model wrote it. */
function inputText(body: string, at: number): string {
  try {
    const content = member(parseJson(body), "content");
    const block = content?.kind === "array" ? content.items[at] : undefined;
    return stringifyJson((block && member(block, "input")) ?? parseJson("{}"));
  } catch (error) {
    throw unreadable(error);
  }
}

/** Reads a content block, its start or a delta of it. Tools, citations and unknown types are not text. */
function readBlock({ type, text, thinking }: JsonObject, into: Collector): void {
  if (type === "text" || type === "text_delta") into.write(text);
  else if (typeof thinking === "string" || type === "redacted_thinking") into.thinks = true;
}

const ENDS: Readonly<Record<string, EndReason>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "content_filter",
};

function readEnd({ stop_reason: reason }: JsonObject, into: Collector): void {
  if (typeof reason !== "string") return;
  if (reason.includes("error")) {
    throw new ModelError("The vendor reports that the completion failed.", { retryable: true });
  }
  const isCall = reason === "tool_use" && (into.takesCalls || into.toolInput !== "none");
  into.finish(isCall ? "stop" : endReason(ENDS, reason));
}

function readUsage(usage: JsonObject, into: Collector): void {
  const { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: written } = usage;
  const sum = tokenCount(input) + tokenCount(read) + tokenCount(written);
  const thinking = object(usage.output_tokens_details).thinking_tokens;
  if (Object.keys(usage).length === 0) return;
  // `message_delta` may repeat the input, leave out the cached part of it, or be the first to name it.
  const isNews = sum > (into.usage?.inputTokens ?? 0);
  into.report({
    ...(isNews ? { inputTokens: sum, cachedTokens: read ?? 0 } : {}),
    outputTokens: usage.output_tokens,
    thinkingTokens: thinking,
  });
}

/** Statuses of the types of errors (platform docs, "Errors"). */
const STATUSES: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

function frameError(error: unknown): ModelError {
  const type = String(object(error).type);
  return frameFailure(describe(object(error)), Object.hasOwn(STATUSES, type) ? STATUSES[type] : undefined);
}

/** Each image may have 5 MB in base64 and 8,000 pixels a side, 2,000 beside more than 20 others. */
const IMAGE_REFUSED = /\bimage exceeds\b|\bimage dimensions exceed/i;

function describe({ message, type }: JsonObject): WireError {
  const words = wordsOf(type, message);
  if (IMAGE_REFUSED.test(words)) return { about: words, code: type, kind: "refused" };
  const isTooLong = type === "request_too_large" || /prompt is too long|context (?:window|limit)/i.test(words);
  return { about: words, code: type, ...(isTooLong ? { kind: "too_long" as const } : {}) };
}
