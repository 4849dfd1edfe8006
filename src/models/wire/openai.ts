import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import type { ModelEntry } from "../port/entry.ts";
import type { EndReason, Message, Reasoning } from "../port/model.ts";
import { ModelError, unreadable } from "../port/model-error.ts";
import { isStrictSchema, type StrictMode } from "../port/schema.ts";
import {
  type Collector,
  endReason,
  type Forms,
  frameFailure,
  type JsonObject,
  list,
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

/**
 * OpenAI's chat completions, which OpenAI and most other servers speak: Ollama, vLLM, llama.cpp, Groq, OpenRouter,
 * Together, Mistral and so on. docs/reference/wire-formats.md lists every field and event that is read.
 */
export const openai: WireFormat = {
  base: { host: "https://api.openai.com", path: "/v1" },
  // maxTokens: the usual name, the other name. format: the schema, any JSON. reasoning: see `reasoning`.
  forms: {
    ...{ temperature: 1, stops: 1, maxTokens: 2, format: SCHEMA_FORMS + 1, reasoning: 3, cacheKey: 1, usage: 1 },
    ...{ strictTools: 1, toolChoice: 1, parallel: 1 },
  },
  optionNames: {
    temperature: /\btemperature\b/i,
    stops: /\bstop\b/i,
    maxTokens: /\bmax_?(completion_?)?tokens\b/i,
    format: /\bresponse_?format\b|\bjson_(object|schema)\b/i,
    // Ollama: "does not support thinking".
    reasoning: /\breasoning(_effort)?\b|\bthinking\b|\bchat_template_kwargs\b/i,
    cacheKey: /\bprompt_cache_key\b/i,
    usage: /\bstream_options\b/i,
    strictTools: /\bstrict\b|\bschema for function\b|\btools\b.*\bparameters\b/i,
    toolChoice: /\btool_choice\b/i,
    parallel: /\bparallel_tool_calls\b/i,
  },
  needsRoomWhenAsked: false,
  temperatureOrReasoning: false,
  takesStrictly: (schema) => isStrictSchema(schema, STRICT),
  sendsSchemaAsTool: false,

  request(entry, call, forms) {
    const { format, tools } = call;
    const fields = {
      model: call.model,
      messages: messages(call),
      ...(call.streamed ? { stream: true } : {}),
      ...(call.streamed && forms.usage === 0 ? { stream_options: { include_usage: true } } : {}),
      ...(call.temperature !== undefined && forms.temperature === 0 ? { temperature: call.temperature } : {}),
      ...(call.stops.length > 0 && forms.stops === 0 ? { stop: call.stops } : {}),
      ...(call.maxTokens !== undefined && forms.maxTokens < 2 ? { [maxTokensName(entry, forms)]: call.maxTokens } : {}),
      ...(call.reasoning !== undefined ? reasoning(entry, call.reasoning, forms) : {}),
      ...(call.cacheKey !== undefined && forms.cacheKey === 0 && entry.vendor === "openai"
        ? { prompt_cache_key: call.cacheKey }
        : {}),
      ...(tools ? choiceFields(tools, forms) : {}),
      ...(format?.type === "json" && forms.format <= SCHEMA_FORMS ? { response_format: { type: "json_object" } } : {}),
    };
    const plain = JSON.stringify(fields);
    const body = tools ? withRawMember(plain, "tools", toolsText(tools, entry)) : plain;
    return {
      path: "/chat/completions",
      headers: entry.apiKey ? { authorization: `Bearer ${entry.apiKey}` } : {},
      body:
        format?.type === "schema"
          ? withRawMember(body, "response_format", schemaFormat(format.schema, format.strict))
          : body,
    };
  },

  readEvent(data, into) {
    if (data.startsWith("[DONE]")) {
      into.isWhole = true;
      return;
    }
    const json = parseObject(data);
    failIfError(json);
    into.identify(json.model);
    const choice = object(list(json.choices)[0]);
    readMessage(object(choice.delta), into);
    readEnd(choice, into);
    // Moonshot's is in the choice.
    const usage = json.usage ?? choice.usage;
    if (usage) readUsage(object(usage), into);
  },

  readWhole(body, into) {
    const json = parseObject(body);
    failIfError(json);
    into.identify(json.model);
    const choice = object(list(json.choices)[0]);
    if (!choice.message) throw unreadable();
    readMessage(object(choice.message), into);
    readEnd(choice, into);
    if (json.usage) readUsage(object(json.usage), into);
    into.isWhole = true;
  },

  // xAI refuses a key with 400. The quotes keep a prompt that the server quotes from looking like that.
  statusOf: ({ about }) => (about.includes('"error":"Incorrect API key provided') ? 401 : undefined),

  readError(body) {
    const json = looseObject(body);
    return describe(object(json.error ?? json), body);
  },
};

function messages({ prompt }: WireCall): unknown[] {
  const messages = prompt.messages.flatMap((message) =>
    message.calls || message.results ? withTools(message) : { role: message.role, content: content(message) },
  );
  return prompt.system === "" ? messages : [{ role: "system", content: prompt.system }, ...messages];
}

/** A message with calls or results. Each result is a message of its own. */
function withTools(message: Message): unknown[] {
  const { role, text, images, calls = [], results = [] } = message;
  const answers = results.map((result) => ({ role: "tool", tool_call_id: result.id, content: result.text }));
  if (calls.length > 0) {
    const asked = calls.map(({ id, ...called }) => ({ id, type: "function", function: called }));
    return [...answers, { role, content: text === "" ? null : text, tool_calls: asked }];
  }
  return text === "" && !images?.length ? answers : [...answers, { role, content: content(message) }];
}

type WireTools = NonNullable<WireCall["tools"]>;

function choiceFields({ choice, parallel }: WireTools, forms: Forms): JsonObject {
  const named = typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice;
  return {
    ...(choice !== "auto" && forms.toolChoice === 0 ? { tool_choice: named } : {}),
    ...(!parallel && forms.parallel === 0 ? { parallel_tool_calls: false } : {}),
  };
}

/** Of the other servers, some refuse `strict`. */
function toolsText({ list }: WireTools, { vendor }: ModelEntry): string {
  const tools = list.map(({ name, description, parameters, strict }) => {
    const head = {
      name,
      ...(description === "" ? {} : { description }),
      ...(strict && vendor === "openai" ? { strict } : {}),
    };
    return `{"type":"function","function":${withRawMember(JSON.stringify(head), "parameters", parameters)}}`;
  });
  return `[${tools.join(",")}]`;
}

/** Text without images is sent as a string, because some servers accept no parts. */
function content({ text, images = [] }: Message): unknown {
  if (images.length === 0) return text;
  const pictures = images.map(({ mediaType, data }) => ({
    type: "image_url",
    image_url: { url: `data:${mediaType};base64,${Buffer.from(data).toString("base64")}` },
  }));
  return text === "" ? pictures : [...pictures, { type: "text", text }];
}

/** OpenAI's models accept the newer name, most other servers the older one. */
function maxTokensName({ vendor }: ModelEntry, forms: Forms): string {
  return (vendor === "openai") === (forms.maxTokens === 0) ? "max_completion_tokens" : "max_tokens";
}

/** Effort that stands for `none`, by form. Models before GPT-5.1 refuse `none`, models before GPT-5 also `minimal`. */
const LEAST = { openai: ["none", "minimal", "low"], other: ["none", "none", "low"] };

function reasoning({ baseUrl = "", vendor }: ModelEntry, depth: Reasoning, { reasoning: form }: Forms): JsonObject {
  if (form >= 3) return {};
  const isRouter = baseUrl.includes("openrouter.ai");
  const isOther = vendor !== "openai" && !isRouter;
  const effort = depth === "none" ? (isOther ? LEAST.other : LEAST.openai)[form] : depth;
  if (isRouter) return { reasoning: { effort } };
  // The chat templates of Qwen and others in vLLM and SGLang read the second field. Strict servers refuse it.
  const isOff = isOther && depth === "none" && form === 0;
  return { reasoning_effort: effort, ...(isOff ? { chat_template_kwargs: { enable_thinking: false } } : {}) };
}

function schemaFormat(schema: string, strict: boolean): string {
  return `{"type":"json_schema","json_schema":{"name":"answer","strict":${strict},"schema":${schema}}}`;
}

/** Reads `message` of a whole completion or `delta` of a stream. Audio and unknown members are not text. */
function readMessage(message: JsonObject, into: Collector): void {
  if (typeof message.content === "string") into.write(message.content);
  // Mistral sends parts. Parts with thoughts are not text.
  else for (const part of list(message.content)) readPart(object(part), into);
  if (message.reasoning_content || message.reasoning || list(message.reasoning_details).length > 0) into.thinks = true;
  if (typeof message.refusal === "string" && message.refusal !== "") into.refuse();
  if (into.takesCalls) for (const call of list(message.tool_calls)) readCall(object(call), into);
}

/** Reads a call or a part of it. Some servers send the arguments as an object, or leave the index out. */
function readCall({ index, id, function: called }: JsonObject, into: Collector): void {
  const { name, arguments: given } = object(called);
  const text = typeof given === "object" && given !== null ? JSON.stringify(given) : given;
  into.writeCall(index ?? undefined, { id, name, text });
}

function readPart({ type, text }: JsonObject, into: Collector): void {
  if (type === "text") into.write(text);
  else if (type === "thinking" || type === "reasoning") into.thinks = true;
}

/** Reasons of all servers with this format, in lower case. Any other reason is `unknown`. */
const ENDS: Readonly<Record<string, EndReason>> = {
  stop: "stop",
  eos: "stop",
  eos_token: "stop",
  stop_sequence: "stop",
  end_turn: "stop",
  complete: "stop",
  length: "length",
  max_tokens: "length",
  model_length: "length",
};
/** Reasons of a completion that asks for tools. */
const CALLED: ReadonlySet<string> = new Set(["tool_calls", "tool_call", "function_call", "tool_use"]);
/** Gemini adds its own word, as in `content_filter: SAFETY`. `sensitive` is Zhipu's. */
const FILTERED = /content_filter|safety|sensitive|refusal|recitation|prohibited|blocklist/;
const FAILED = /error|abort|insufficient_system_resource/;

function readEnd({ finish_reason: reason }: JsonObject, into: Collector): void {
  if (typeof reason !== "string" || reason === "") return;
  const word = reason.toLowerCase();
  if (FAILED.test(word)) throw new ModelError("The vendor reports that the completion failed.", { retryable: true });
  if (into.takesCalls && CALLED.has(word)) into.finish("stop");
  else into.finish(FILTERED.test(word) ? "content_filter" : endReason(ENDS, word));
}

function readUsage(usage: JsonObject, into: Collector): void {
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = usage;
  const { reasoning_tokens: thinking } = object(usage.completion_tokens_details);
  const written = tokenCount(output);
  // xAI counts thinking beside the completion and not in it.
  const isBeside = tokenCount(thinking) > 0 && tokenCount(total) === tokenCount(input) + written + tokenCount(thinking);
  into.report({
    inputTokens: input,
    outputTokens: isBeside ? written + tokenCount(thinking) : output,
    // The second name is DeepSeek's, the third Moonshot's.
    cachedTokens:
      object(usage.prompt_tokens_details).cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens,
    thinkingTokens: thinking,
  });
  if (Number(thinking) > 0) into.thinks = true;
}

/** @throws ModelError if a response with status 200 is an error */
function failIfError(json: JsonObject): void {
  if (json.error) throw frameFailure(describe(object(json.error), String(json.error)), object(json.error).code);
  // FastChat and older vLLM.
  if (json.object === "error") throw frameFailure(describe(json, ""), json.code);
}

/** The third is DashScope's. */
const REFUSED = /content_filter|content_policy|data_?inspection|safety|invalid_prompt/i;
/** DeepSeek's and OpenRouter's words, which have no code. */
const REFUSED_WORDS = /content exists risk|requires moderation.*flagged/i;
/** In this order: most servers; llama.cpp; xAI; TGI; Cohere, Gemini, Zhipu and Moonshot; DashScope. */
const TOO_LONG = new RegExp(
  [
    "context_length|context (?:length|window)|maximum context|prompt is too long|input is too long",
    "exceed_context_size|maximum prompt|`inputs` (?:tokens|must have)|too many tokens:",
    "input token count.{0,40}exceeds|prompt exceeds|exceeded model token limit|range of input length",
  ].join("|"),
  "i",
);

/** @param body stands for the message where that is not text, as in Mistral's and FastAPI's lists of refused fields */
function describe({ message, code, param, type }: JsonObject, body: string): WireError {
  const words = wordsOf(code, type, typeof message === "string" ? message : body);
  if (REFUSED.test(wordsOf(code, type)) || REFUSED_WORDS.test(words)) return { about: words, kind: "refused" };
  if (TOO_LONG.test(words)) return { about: words, kind: "too_long" };
  return {
    about: words,
    code: code ?? type,
    ...(typeof param === "string" && param !== "" ? { param } : {}),
    ...(code === "insufficient_quota" ? { retryable: false } : {}),
  };
}

/**
 * Platform docs, "Structured model outputs", supported schemas: no string lengths, no `default`. OpenAI's own client
 * sends `$schema`.
 */
const STRICT: StrictMode = {
  takes: (keyword) => TAKEN.has(keyword),
  allRequired: true,
  fits: (nodes) => !exceedsEnums(nodes),
};

const TAKEN: ReadonlySet<string> = new Set(["minimum", "maximum", "minItems", "maxItems", "$schema"]);

const MAX_ENUM_VALUES = 1_000;
const LONG_ENUM = { values: 250, characters: 15_000 };

function exceedsEnums(nodes: readonly JsonNode[]): boolean {
  let total = 0;
  for (const node of nodes) {
    const values = member(node, "enum");
    if (values?.kind !== "array") continue;
    total += values.items.length;
    const characters = values.items.reduce((sum, value) => sum + stringifyJson(value).length, 0);
    if (values.items.length > LONG_ENUM.values && characters > LONG_ENUM.characters) return true;
  }
  return total > MAX_ENUM_VALUES;
}
