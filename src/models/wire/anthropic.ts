import { type JsonNode, member } from "../../contract/json.ts";
import { CACHED_FROM, lengthOfMessage, type Message, type Prompt, type Reasoning } from "../port/model.ts";
import { isRecursive, isStrictSchema, optionalNames, type StrictMode } from "../port/schema.ts";
import { ANSWER_TOOL, readError, readEvent, readWhole } from "./anthropic-reply.ts";
import { type RootRule, sentTool } from "./tool-schema.ts";
import {
  type Forms,
  type JsonObject,
  list,
  object,
  SCHEMA_FORMS,
  type WireCall,
  type WireFormat,
  withRawMember,
} from "./wire.ts";

/** Thinking in tokens, for models that take a budget instead of an effort. */
const BUDGETS: Readonly<Record<Reasoning, number>> = { none: 0, low: 2_048, medium: 8_192, high: 16_384 };
/** Smallest budget that the API accepts. */
const MIN_BUDGET = 1_024;
/** The form of `reasoning` that is a budget. */
const BUDGET_FORM = 2;

/** Anthropic's messages. docs/reference/wire-formats.md lists every field and event that is read. */
export const anthropic: WireFormat = {
  api: "messages",
  base: { host: "https://api.anthropic.com", path: "/v1" },
  // format: the schema; the prompt alone asks for any JSON. reasoning: see `thinkingFields`.
  forms: {
    ...{ temperature: 1, stops: 1, maxTokens: 1, format: SCHEMA_FORMS, reasoning: 3, cacheKey: 1, usage: 0 },
    ...{ strictTools: 1, toolChoice: 1, parallel: 0, toolReasoning: 0, toolFormat: 0, toolTurn: 0, system: 0 },
    ...{ thoughts: 0, signature: 0 },
  },
  optionNames: {
    temperature: /\btemperature\b/i,
    stops: /\bstop_?sequences\b/i,
    maxTokens: /\bmax_?tokens\b(?!.*\bbudget_tokens\b)/i,
    strictTools: /\btools\.\d+\b.*\bstrict\b|\bstrict\b.*\btools?\b/i,
    // From Claude Opus 5.5 on: 'tool_choice: type "tool" and "any" are not supported for this model.'
    toolChoice: /\btool_choice\b[^.]*\bnot supported\b/i,
    format: /\boutput_config\.format\b|\boutput_format\b|\b(?:json_|input_)?schema\b|\btools?\b|\btool_choice\b/i,
    reasoning: /\bthinking\b|\beffort\b|\badaptive\b|\bbudget_tokens\b|\boutput_config\b/i,
    cacheKey: /\bcache_control\b/i,
  },
  needsRoomWhenAsked: true,
  cannotThink,
  temperatureOrReasoning: true,
  defaultMaxTokens: 32_000,
  takesStrictly: (schema) => isStrictSchema(schema, STRICT),
  otherSchemas: "tool",

  headers: ({ apiKey = "" }) => ({ "x-api-key": apiKey, "anthropic-version": "2023-06-01" }),

  request(_, call, forms) {
    const { format, tools } = call;
    const schema = format?.type === "schema" ? format : undefined;
    const isForced = forces(call, forms);
    // A model that thinks must not be forced to call a tool.
    const thinking = thinkingFields(isForced ? { ...call, reasoning: "none" } : call, forms);
    const effort = object(thinking.output_config).effort;
    const fields = JSON.stringify({
      model: call.model,
      max_tokens: call.maxTokens,
      ...(call.prompt.system === "" ? {} : { system: systemBlocks(call, forms) }),
      ...(call.streamed ? { stream: true } : {}),
      // The range ends at 1.
      ...(call.temperature !== undefined && forms.temperature === 0
        ? { temperature: Math.min(1, call.temperature) }
        : {}),
      ...(call.stops.length > 0 && forms.stops === 0 ? { stop_sequences: call.stops } : {}),
      ...(thinking.thinking === undefined ? {} : { thinking: thinking.thinking }),
      ...(effort !== undefined && !schema?.strict ? { output_config: { effort } } : {}),
      ...(schema && !schema.strict ? { tool_choice: answerChoice(object(thinking.thinking)) } : {}),
      ...(tools ? { tool_choice: toolChoice(tools, isForced) } : {}),
    });
    const spoken = withRawMember(fields, "messages", `[${messages(call, forms).join(",")}]`);
    const body = tools ? withRawMember(spoken, "tools", toolsText(call, forms)) : spoken;
    return {
      path: "/messages",
      body: !schema
        ? body
        : schema.strict
          ? withRawMember(body, "output_config", schemaOutput(effort, schema.schema))
          : withRawMember(body, "tools", `[${withRawMember(TOOL_TEXT, "input_schema", schema.schema)}]`),
    };
  },

  // An account without credit has the status of an invalid request.
  statusOf: ({ about }) => (/^invalid_request_error Your credit balance is too low/.test(about) ? 402 : undefined),

  readEvent,
  readWhole,
  readError,
};

function schemaOutput(effort: unknown, schema: string): string {
  const config = JSON.stringify(effort === undefined ? {} : { effort });
  return withRawMember(config, "format", `{"type":"json_schema","schema":${schema}}`);
}

/** The tool that takes a schema for which there is no strict mode. */
const TOOL = {
  name: ANSWER_TOOL,
  description: "Takes the answer. Call it once, with the whole answer, and write nothing else.",
};
const TOOL_TEXT = JSON.stringify(TOOL);

/** A model that thinks must not be forced to call a tool. It may then write the answer as text, which is read too. */
function answerChoice({ type = "disabled" }: JsonObject): JsonObject {
  return type === "disabled" ? { type: "tool", name: TOOL.name } : { type: "auto" };
}

type WireTools = NonNullable<WireCall["tools"]>;

/** Whether the call forces the model to use a tool of the caller. Some models cannot be forced. */
function forces({ tools }: WireCall, forms: Forms): boolean {
  return forms.toolChoice === 0 && (tools?.choice === "required" || typeof tools?.choice === "object");
}

function toolChoice({ choice, parallel }: WireTools, isForced: boolean): JsonObject {
  if (choice === "none") return { type: "none" };
  const one = parallel ? {} : { disable_parallel_tool_use: true };
  if (!isForced) return { type: "auto", ...one };
  return { ...(typeof choice === "object" ? { type: "tool", name: choice.name } : { type: "any" }), ...one };
}

const ROOT: RootRule = { refused: ["anyOf", "oneOf", "allOf"], needsProperties: false };

/** The last tool is marked where the instructions, which follow, are not. */
function toolsText(call: WireCall, forms: Forms): string {
  const { list = [] } = call.tools ?? {};
  const isMarked = isMarking(call, forms) && !marksSystem(call) && toolsLength(call) >= CACHED_FROM;
  const tools = list.map(({ name, strict, ...tool }, at) => {
    const { description, schema } = sentTool(tool, ROOT);
    const more = { ...(strict ? { strict } : {}), ...(isMarked && at === list.length - 1 ? CACHE_MARK : {}) };
    const head = JSON.stringify({ name, ...(description === "" ? {} : { description }), ...more });
    return withRawMember(head, "input_schema", schema);
  });
  return `[${tools.join(",")}]`;
}

function toolsLength({ tools }: WireCall): number {
  return tools?.list.reduce((sum, { description, parameters }) => sum + description.length + parameters.length, 0) ?? 0;
}

/** Marks the end of a prefix that later calls are likely to share. */
const CACHE_MARK = { cache_control: { type: "ephemeral" } };

function isMarking({ cacheKey }: WireCall, forms: Forms): boolean {
  return cacheKey !== undefined && forms.cacheKey === 0;
}

function systemBlocks(call: WireCall, forms: Forms): unknown {
  const { system } = call.prompt;
  if (!isMarking(call, forms) || !marksSystem(call)) return system;
  return [{ type: "text", text: system, ...CACHE_MARK }];
}

/** Whether the instructions and the tools before them are long enough for the cache. */
function marksSystem(call: WireCall): boolean {
  const { system } = call.prompt;
  return system !== "" && system.length + toolsLength(call) >= CACHED_FROM;
}

/**
 * The message before the last is marked: a next request of the conversation repeats everything up to there. The last
 * message is not, because writing to the cache costs more than plain input, and many requests are never continued; but
 * one with results of tools is, because the next step follows at once.
 */
function messages(call: WireCall, forms: Forms): string[] {
  const { system, messages } = call.prompt;
  const last = messages.length - (messages.at(-1)?.results ? 1 : 2);
  const before = messages.slice(0, last + 1);
  const length = before.reduce((sum, message) => sum + lengthOfMessage(message), system.length + toolsLength(call));
  const marked = isMarking(call, forms) && length >= CACHED_FROM ? last : -1;
  return messages.map((message, at) => {
    const { role, calls, results } = message;
    if (calls || results) return `{"role":"${role}","content":[${toolBlocks(message, at === marked).join(",")}]}`;
    return JSON.stringify({ role, content: content(message, at === marked) });
  });
}

/** The blocks of a message with calls or results. Arguments are inserted as they are written. */
function toolBlocks(message: Message, isMarked: boolean): string[] {
  const { text, images, calls = [], results = [] } = message;
  const mark = (isLast: boolean) => (isMarked && isLast ? CACHE_MARK : {});
  const isAlone = text === "" && !images?.length;
  const answers = results.map((result, at) =>
    JSON.stringify({
      ...{ type: "tool_result", tool_use_id: result.id, content: result.text },
      ...mark(isAlone && at === results.length - 1),
    }),
  );
  const others = isAlone ? [] : list(content(message, isMarked && calls.length === 0, true));
  const asked = calls.map(({ id, name, arguments: given }, at) =>
    withRawMember(JSON.stringify({ type: "tool_use", id, name, ...mark(at === calls.length - 1) }), "input", given),
  );
  return [...answers, ...others.map((block) => JSON.stringify(block)), ...asked];
}

function content({ text, images = [] }: Message, isMarked: boolean, asBlocks = isMarked): unknown {
  if (images.length === 0 && !asBlocks) return text;
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
function thinkingFields({ reasoning: depth, maxTokens = 0, prompt }: WireCall, forms: Forms): JsonObject {
  const { reasoning: form } = forms;
  if (depth === undefined || form >= 3) return {};
  if (depth === "none") {
    return form === 0 ? { thinking: { type: "disabled" } } : form === 1 ? { output_config: { effort: "low" } } : {};
  }
  if (form < BUDGET_FORM) return { thinking: { type: "adaptive" }, output_config: { effort: depth } };
  if (cannotThink(prompt, forms)) return {};
  // The budget must be below the ceiling, and a small model or a full context window may have lowered the ceiling.
  const budget = Math.min(BUDGETS[depth], Math.floor((maxTokens * 2) / 3));
  return budget < MIN_BUDGET ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
}

/** With a budget, the message that asks for tools must begin with its thinking, which is not kept. */
function cannotThink({ messages }: Prompt, { reasoning: form }: Forms): boolean {
  return form === BUDGET_FORM && messages.at(-1)?.results !== undefined;
}

/**
 * Platform docs, "Structured outputs", JSON Schema limitations: of the bounds only a `minItems` of 0 or 1, and no
 * schema that contains itself.
 */
const STRICT: StrictMode = {
  takes: (keyword, value) => keyword === "minItems" && value.kind === "scalar" && Number(value.text) <= 1,
  allRequired: false,
  fits: (nodes, root) => !exceedsLimits(nodes) && !isRecursive(root),
};

/** The docs allow 24, but compiling the grammar fails from 13 on, according to version 4.0.105 of the AI SDK. */
const MAX_OPTIONAL = 10;
const MAX_UNIONS = 16;

function exceedsLimits(nodes: readonly JsonNode[]): boolean {
  const optional = nodes.reduce((sum, node) => sum + optionalNames(node).length, 0);
  const unions = nodes.filter((node) => member(node, "anyOf") || member(node, "type")?.kind === "array").length;
  return optional > MAX_OPTIONAL || unions > MAX_UNIONS;
}
