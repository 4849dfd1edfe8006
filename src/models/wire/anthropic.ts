import { type JsonNode, member, parseJson, stringifyJson } from "../../contract/json.ts";
import type { EndReason, Message, Reasoning } from "../port/model.ts";
import { ModelError, unreadable } from "../port/model-error.ts";
import { isStrictSchema, optionalNames, type StrictMode } from "../port/schema.ts";
import {
  type Collector,
  endReason,
  type Forms,
  frameFailure,
  type JsonObject,
  looseObject,
  object,
  parseObject,
  SCHEMA_FORMS,
  tokenCount,
  type WireCall,
  type WireError,
  type WireFormat,
  withRawMember,
  wordsOf,
} from "./wire.ts";

/** Thinking in tokens, for models that take a budget instead of an effort. */
const BUDGETS: Readonly<Record<Reasoning, number>> = { none: 0, low: 2_048, medium: 8_192, high: 16_384 };
/** Smallest budget that the API accepts. */
const MIN_BUDGET = 1_024;
/** Characters from which a prefix is marked for the cache: about 1,024 tokens, the smallest prefix that is cached. */
const CACHED_FROM = 4_096;

/** Anthropic's messages. docs/reference/wire-formats.md lists every field and event that is read. */
export const anthropic: WireFormat = {
  base: { host: "https://api.anthropic.com", path: "/v1" },
  // format: the schema; the prompt alone asks for any JSON. reasoning: see `thinkingFields`.
  forms: { temperature: 1, stops: 1, maxTokens: 1, format: SCHEMA_FORMS, reasoning: 3, cacheKey: 1, usage: 0 },
  optionNames: {
    temperature: /\btemperature\b/i,
    stops: /\bstop_?sequences\b/i,
    maxTokens: /\bmax_?tokens\b(?!.*\bbudget_tokens\b)/i,
    format: /\boutput_config\.format\b|\boutput_format\b|\b(?:json_|input_)?schema\b|\btools?\b|\btool_choice\b/i,
    reasoning: /\bthinking\b|\beffort\b|\badaptive\b|\bbudget_tokens\b|\boutput_config\b/i,
    cacheKey: /\bcache_control\b/i,
  },
  needsRoomWhenAsked: true,
  temperatureOrReasoning: true,
  defaultMaxTokens: 32_000,
  takesStrictly: (schema) => isStrictSchema(schema, STRICT),

  request(entry, call, forms) {
    const { format } = call;
    const schema = format?.type === "schema" ? format : undefined;
    const thinking = thinkingFields(call, forms);
    const effort = object(thinking.output_config).effort;
    const body = JSON.stringify({
      model: call.model,
      max_tokens: call.maxTokens,
      ...(call.prompt.system === "" ? {} : { system: systemBlocks(call, forms) }),
      messages: messages(call, forms),
      ...(call.streamed ? { stream: true } : {}),
      // The range ends at 1.
      ...(call.temperature !== undefined && forms.temperature === 0
        ? { temperature: Math.min(1, call.temperature) }
        : {}),
      ...(call.stops.length > 0 && forms.stops === 0 ? { stop_sequences: call.stops } : {}),
      ...(thinking.thinking === undefined ? {} : { thinking: thinking.thinking }),
      ...(effort !== undefined && !schema?.strict ? { output_config: { effort } } : {}),
      ...(schema && !schema.strict ? { tool_choice: toolChoice(object(thinking.thinking)) } : {}),
    });
    return {
      path: "/messages",
      headers: { "x-api-key": entry.apiKey ?? "", "anthropic-version": "2023-06-01" },
      body: !schema
        ? body
        : schema.strict
          ? withRawMember(body, "output_config", schemaOutput(effort, schema.schema))
          : withRawMember(body, "tools", `[${withRawMember(TOOL_TEXT, "input_schema", schema.schema)}]`),
    };
  },

  readEvent(data, into) {
    const json = parseObject(data);
    switch (json.type) {
      case "message_start":
        into.identify(object(json.message).model);
        readUsage(object(object(json.message).usage), into);
        return;
      case "content_block_start":
        readBlock(object(json.content_block), into);
        into.toolInput = isAnswerTool(object(json.content_block)) ? "empty" : "none";
        return;
      case "content_block_delta":
        readBlock(object(json.delta), into);
        readInput(object(json.delta), into);
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
  },

  readWhole(body, into) {
    const json = parseObject(body);
    if (json.type === "error" || json.error) throw frameError(json.error);
    if (!Array.isArray(json.content)) throw unreadable();
    for (const [at, block] of json.content.entries()) {
      readBlock(object(block), into);
      if (!isAnswerTool(object(block))) continue;
      into.toolInput = "begun";
      into.write(inputText(body, at));
    }
    into.identify(json.model);
    readEnd(json, into);
    readUsage(object(json.usage), into);
    into.isWhole = true;
  },

  readError(body) {
    return describe(object(looseObject(body).error));
  },
};

function schemaOutput(effort: unknown, schema: string): string {
  const config = JSON.stringify(effort === undefined ? {} : { effort });
  return withRawMember(config, "format", `{"type":"json_schema","schema":${schema}}`);
}

/** The tool that takes a schema for which there is no strict mode. */
const TOOL = {
  name: "answer",
  description: "Takes the answer. Call it once, with the whole answer, and write nothing else.",
};
const TOOL_TEXT = JSON.stringify(TOOL);

/** A model that thinks must not be forced to call a tool. It may then write the answer as text, which is read too. */
function toolChoice({ type = "disabled" }: JsonObject): JsonObject {
  return type === "disabled" ? { type: "tool", name: TOOL.name } : { type: "auto" };
}

function isAnswerTool({ type, name }: JsonObject): boolean {
  return type === "tool_use" && name === TOOL.name;
}

/** Reads a part of the tool's input, which is JSON text. */
function readInput({ type, partial_json: text }: JsonObject, into: Collector): void {
  if (into.toolInput === "none" || type !== "input_json_delta" || !text) return;
  into.toolInput = "begun";
  into.write(text);
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

/** Marks the end of a prefix that later calls are likely to share. */
const CACHE_MARK = { cache_control: { type: "ephemeral" } };

function isMarking({ cacheKey }: WireCall, forms: Forms): boolean {
  return cacheKey !== undefined && forms.cacheKey === 0;
}

function systemBlocks(call: WireCall, forms: Forms): unknown {
  const { system } = call.prompt;
  if (!isMarking(call, forms) || system.length < CACHED_FROM) return system;
  return [{ type: "text", text: system, ...CACHE_MARK }];
}

/**
 * The message before the last is marked: a next request of the conversation repeats everything up to there. The last
 * message is not, because writing to the cache costs more than plain input, and many requests are never continued.
 */
function messages(call: WireCall, forms: Forms): unknown[] {
  const { system, messages } = call.prompt;
  const earlier = messages.slice(0, -1);
  const length = earlier.reduce((sum, { text }) => sum + text.length, system.length);
  const marked = isMarking(call, forms) && length >= CACHED_FROM ? earlier.length - 1 : -1;
  return messages.map((message, at) => ({ role: message.role, content: content(message, at === marked) }));
}

function content({ text, images = [] }: Message, isMarked: boolean): unknown {
  if (images.length === 0 && !isMarked) return text;
  const blocks: object[] = images.map(({ mediaType, data }) => ({
    type: "image",
    source: { type: "base64", media_type: mediaType, data: Buffer.from(data).toString("base64") },
  }));
  if (text !== "") blocks.push({ type: "text", text });
  return blocks.map((block, at) => (isMarked && at === blocks.length - 1 ? { ...block, ...CACHE_MARK } : block));
}

/**
 * Current models take an effort, older ones a budget of tokens. Several current models think unless `disabled` is sent,
 * and some refuse that too, so they get the lowest effort.
 */
function thinkingFields({ reasoning: depth, maxTokens = 0 }: WireCall, { reasoning: form }: Forms): JsonObject {
  if (depth === undefined || form >= 3) return {};
  if (depth === "none") {
    return form === 0 ? { thinking: { type: "disabled" } } : form === 1 ? { output_config: { effort: "low" } } : {};
  }
  if (form < 2) return { thinking: { type: "adaptive" }, output_config: { effort: depth } };
  // The budget must be below the ceiling, and a small model or a full context window may have lowered the ceiling.
  const budget = Math.min(BUDGETS[depth], Math.floor((maxTokens * 2) / 3));
  return budget < MIN_BUDGET ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
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
  into.finish(reason === "tool_use" && into.toolInput !== "none" ? "stop" : endReason(ENDS, reason));
}

function readUsage(usage: JsonObject, into: Collector): void {
  const { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: written } = usage;
  const sum = tokenCount(input) + tokenCount(read) + tokenCount(written);
  const thinking = object(usage.output_tokens_details).thinking_tokens;
  if (Number(thinking) > 0) into.thinks = true;
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

function describe({ message, type }: JsonObject): WireError {
  const words = wordsOf(type, message);
  const isTooLong = type === "request_too_large" || /prompt is too long|context (?:window|limit)/i.test(words);
  return { about: words, ...(isTooLong ? { kind: "too_long" as const } : {}) };
}

/** Platform docs, "Structured outputs", JSON Schema limitations: of the bounds only a `minItems` of 0 or 1. */
const STRICT: StrictMode = {
  takes: (keyword, value) => keyword === "minItems" && value.kind === "scalar" && Number(value.text) <= 1,
  allRequired: false,
  fits: (nodes) => !exceedsLimits(nodes),
};

/** The docs allow 24, but compiling the grammar fails from 13 on, according to version 4.0.105 of the AI SDK. */
const MAX_OPTIONAL = 10;
const MAX_UNIONS = 16;

function exceedsLimits(nodes: readonly JsonNode[]): boolean {
  const optional = nodes.reduce((sum, node) => sum + optionalNames(node).length, 0);
  const unions = nodes.filter((node) => member(node, "type")?.kind === "array").length;
  return optional > MAX_OPTIONAL || unions > MAX_UNIONS;
}
