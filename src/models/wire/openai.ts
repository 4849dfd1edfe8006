import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import { targetOf } from "../../contract/schema-parts.ts";
import type { ModelEntry } from "../port/entry.ts";
import type { Image, Message, Reasoning } from "../port/model.ts";
import { isStrictSchema, type StrictMode } from "../port/schema.ts";
import { BESIDE_TOOLS, readError, readEvent, readWhole, statusOf } from "./openai-reply.ts";
import { type RootRule, sentTool } from "./tool-schema.ts";
import { type Forms, type JsonObject, SCHEMA_FORMS, type WireCall, type WireFormat, withRawMember } from "./wire.ts";

/**
 * OpenAI's chat completions, which OpenAI and most other servers speak: Ollama, vLLM, llama.cpp, Groq, OpenRouter,
 * Together, Mistral and so on. docs/reference/wire-formats.md lists every field and event that is read.
 */
export const openai: WireFormat = {
  api: "chat",
  base: { host: "https://api.openai.com", path: "/v1" },
  // maxTokens: the usual name, the other name. format: the schema, any JSON. reasoning: see `reasoning`.
  forms: {
    ...{ temperature: 1, stops: 1, maxTokens: 2, format: SCHEMA_FORMS + 1, reasoning: 3, cacheKey: 1, usage: 1 },
    ...{ strictTools: 1, toolChoice: 1, parallel: 1, toolReasoning: 1, toolFormat: 0, toolTurn: 1, system: 1 },
    ...{ thoughts: 1, signature: 1 },
  },
  optionNames: {
    temperature: /\btemperature\b/i,
    stops: /\bstop\b/i,
    maxTokens: /\bmax_?(completion_?)?tokens\b/i,
    format: /\bresponse_?format\b|\bjson_(object|schema)\b|\bjson mode\b/i,
    // GPT-5.4 and later take no other effort than `none` beside tools, also not their own default.
    toolReasoning: BESIDE_TOOLS,
    // Before `reasoning`, whose words are beside them. DeepSeek and Kimi; Gemini.
    thoughts: /\breasoning_content\b/i,
    signature: /\bthought_?signature\b/i,
    // Ollama: "does not support thinking". xAI: "does not support parameter reasoningEffort".
    reasoning: /\breasoning(_?effort)?\b|\bthinking\b|\bchat_template_kwargs\b/i,
    cacheKey: /\bprompt_cache_key\b/i,
    usage: /\bstream_options\b/i,
    strictTools: /\bstrict\b|\bschema for function\b|\btools\b.*\bparameters\b/i,
    toolChoice: /\btool_choice\b/i,
    parallel: /\bparallel_tool_calls\b/i,
    // The chat templates of Gemma 2 and others, and Gemma at Google.
    system: /\bsystem role (?:is )?not supported\b|\bdeveloper instruction is not enabled\b/i,
    // Mistral, and its models behind vLLM.
    toolTurn: /unexpected role 'user' after role 'tool'/i,
  },
  needsRoomWhenAsked: false,
  temperatureOrReasoning: false,
  takesStrictly: (schema) => isStrictSchema(schema, STRICT),
  otherSchemas: "mode",

  headers: ({ apiKey }) => (apiKey ? { authorization: `Bearer ${apiKey}` } : {}),

  request(entry, call, forms) {
    const { format, tools } = call;
    const fields = {
      model: call.model,
      messages: messages(call, forms),
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
      body:
        format?.type === "schema"
          ? withRawMember(body, "response_format", schemaFormat(format.schema, format.strict))
          : body,
    };
  },

  statusOf,
  readEvent,
  readWhole,
  readError,
};

function messages({ prompt }: WireCall, forms: Forms): unknown[] {
  const messages = prompt.messages.flatMap((message) =>
    message.calls || message.results
      ? withTools(message, forms)
      : { role: message.role, content: content(message), ...thoughts(message, forms) },
  );
  return prompt.system === "" ? messages : [{ role: "system", content: prompt.system }, ...messages];
}

/** Stands between the results of tools and the user's text for servers that demand a message there. */
const BETWEEN = { role: "assistant", content: "OK." };

/** Stands for thinking that is not kept. Kimi takes no empty text. */
function thoughts({ role }: Message, forms: Forms): JsonObject {
  return role === "assistant" && forms.thoughts > 0 ? { reasoning_content: "." } : {};
}

/** Gemini's word for a missing signature, in the first call of a message. */
const UNSIGNED = { extra_content: { google: { thought_signature: "skip_thought_signature_validator" } } };

/** A message with calls or results. Each result is a message of its own. */
function withTools(message: Message, forms: Forms): unknown[] {
  const { role, text, images, calls = [], results = [] } = message;
  const answers = results.map((result) => ({ role: "tool", tool_call_id: result.id, content: result.text }));
  if (calls.length > 0) {
    const asked = calls.map(({ id, ...called }, at) => ({
      ...{ id, type: "function", function: called },
      ...(at === 0 && forms.signature > 0 ? UNSIGNED : {}),
    }));
    return [...answers, { role, content: text === "" ? null : text, tool_calls: asked, ...thoughts(message, forms) }];
  }
  if (text === "" && !images?.length) return answers;
  return [...answers, ...(forms.toolTurn > 0 ? [BETWEEN] : []), { role, content: content(message) }];
}

type WireTools = NonNullable<WireCall["tools"]>;

/** @param named what stands beside the type for the one tool that must be called */
export function choiceFields(
  { choice, parallel }: WireTools,
  forms: Forms,
  named: (name: string) => JsonObject = (name) => ({ function: { name } }),
): JsonObject {
  const wanted = typeof choice === "object" ? { type: "function", ...named(choice.name) } : choice;
  return {
    ...(choice !== "auto" && forms.toolChoice === 0 ? { tool_choice: wanted } : {}),
    ...(!parallel && forms.parallel === 0 ? { parallel_tool_calls: false } : {}),
  };
}

const ROOT: RootRule = { refused: ["anyOf", "oneOf", "allOf", "enum", "not"], needsProperties: true };
const ROOT_OF_OTHERS: RootRule = { refused: [], needsProperties: true };

/**
 * Name, description, strict mode and schema of a tool, as the text of an object. OpenAI demands `items` of each array.
 * @param strict undefined: not sent, because some of the other servers refuse it
 */
export function toolText(
  { name, itemised, ...tool }: WireTools["list"][number],
  strict: boolean | undefined,
  { vendor }: ModelEntry,
): string {
  const isOwn = vendor === "openai";
  const given = isOwn && itemised !== undefined ? { ...tool, parameters: itemised } : tool;
  const { description, schema } = sentTool(given, isOwn ? ROOT : ROOT_OF_OTHERS);
  return withRawMember(JSON.stringify({ name, description: description || undefined, strict }), "parameters", schema);
}

function toolsText({ list }: WireTools, entry: ModelEntry): string {
  const tools = list.map((tool) => {
    const isStrict = tool.strict && entry.vendor === "openai";
    return `{"type":"function","function":${toolText(tool, isStrict || undefined, entry)}}`;
  });
  return `[${tools.join(",")}]`;
}

/** Text without images is sent as a string, because some servers accept no parts. */
function content({ text, images = [] }: Message): unknown {
  if (images.length === 0) return text;
  const pictures = images.map((image) => ({ type: "image_url", image_url: { url: dataUrl(image) } }));
  return text === "" ? pictures : [...pictures, { type: "text", text }];
}

export function dataUrl({ mediaType, data }: Image): string {
  return `data:${mediaType};base64,${Buffer.from(data).toString("base64")}`;
}

/** OpenAI's models accept the newer name, most other servers the older one. */
function maxTokensName({ vendor }: ModelEntry, forms: Forms): string {
  return (vendor === "openai") === (forms.maxTokens === 0) ? "max_completion_tokens" : "max_tokens";
}

/** Effort that stands for `none`, by form. Models before GPT-5.1 refuse `none`, models before GPT-5 also `minimal`. */
export const LEAST = { openai: ["none", "minimal", "low"], other: ["none", "none", "low"] };

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

/**
 * Platform docs, "Structured model outputs", supported schemas: no string lengths, no `default`. OpenAI's own client
 * sends `$schema`.
 */
const STRICT: StrictMode = {
  takes: (keyword) => TAKEN.has(keyword),
  allRequired: true,
  fits: (nodes, root) => !exceedsEnums(nodes) && nodes.every((node) => areToldApart(node, root)),
};

const TAKEN: ReadonlySet<string> = new Set([
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "$schema"],
]);

/**
 * Whether alternatives that are objects begin with different names, or different values of one name. Else: "Objects
 * provided via 'anyOf' must not share identical first keys. Consider adding a discriminator key".
 */
function areToldApart(node: JsonNode, root: JsonNode): boolean {
  const branches = member(node, "anyOf");
  const firsts = (branches?.kind === "array" ? branches.items : []).flatMap((branch) => {
    const properties = member(targetOf(branch, root) ?? branch, "properties");
    const [first] = properties?.kind === "object" ? properties.members : [];
    return first ? [first] : [];
  });
  return Map.groupBy(firsts, ([name]) => name)
    .values()
    .every((sharing) => {
      const values = sharing.flatMap(([, property]) => member(property, "const") ?? []).map(stringifyJson);
      return sharing.length === 1 || new Set(values).size === sharing.length;
    });
}

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
