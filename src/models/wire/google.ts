import { type JsonNode, JsonText, member, parseJson } from "../../contract/json.ts";
import type { EndReason, Message, Reasoning } from "../port/model.ts";
import { ModelError, unreadable } from "../port/model-error.ts";
import { isRecursive, membersOf, nodes } from "../port/schema.ts";
import { type Collector, tokenCount } from "./collector.ts";
import {
  endReason,
  frameFailure,
  type JsonObject,
  list,
  looseObject,
  object,
  parseObject,
  SCHEMA_FORMS,
  type WireCall,
  type WireError,
  type WireFormat,
  waitIn,
  withRawMember,
  wordsOf,
} from "./wire.ts";

/** Thinking in tokens, for models that take no level. */
const BUDGETS: Readonly<Record<Reasoning, number>> = { none: 0, low: 1_024, medium: 8_192, high: 24_576 };
/** Models that take a budget. Later ones take a level: they refuse a budget, or follow it badly. */
const TAKES_BUDGET = /\bgemini-[12]\b/;

/** Gemini's generateContent; docs/reference/wire-formats.md lists every field. Its cache needs no marks. */
export const google: WireFormat = {
  api: "generate_content",
  base: { host: "https://generativelanguage.googleapis.com", path: "/v1beta" },
  // format: the schema, any JSON. reasoning: see `thinkingConfig`.
  forms: {
    ...{ temperature: 1, stops: 1, maxTokens: 1, format: SCHEMA_FORMS + 1, reasoning: 3, cacheKey: 0, usage: 0 },
    ...{ strictTools: 0, toolChoice: 0, parallel: 0, toolReasoning: 0, toolFormat: 1, toolTurn: 0, system: 1 },
    ...{ thoughts: 0, signature: 0 },
  },
  optionNames: {
    temperature: /\btemperature\b/i,
    stops: /\bstop_?sequences\b/i,
    maxTokens: /\bmax_?output_?tokens\b/i,
    // Gemma.
    system: /\bdeveloper instruction is not enabled\b/i,
    // Models before Gemini 3: "Function calling with a response mime type: 'application/json' is unsupported".
    toolFormat: /\b(?:function calling|tool use) with a response mime type\b/i,
    format: /\bresponse_?(mime_?type|json_?schema|schema)\b|\bschema\b|\bjson mode\b/i,
    reasoning: /\bthinking(_?config|_?budget|_?level)?\b|\bbudget\b/i,
  },
  needsRoomWhenAsked: true,
  temperatureOrReasoning: false,
  takesStrictly,
  otherSchemas: "prompt",

  headers: ({ apiKey = "" }) => ({ "x-goog-api-key": apiKey }),

  request(_, call, forms) {
    const { format } = call;
    const config = JSON.stringify({
      ...(call.temperature !== undefined && forms.temperature === 0 ? { temperature: call.temperature } : {}),
      ...(call.stops.length > 0 && forms.stops === 0 ? { stopSequences: call.stops } : {}),
      ...(call.maxTokens !== undefined && forms.maxTokens === 0 ? { maxOutputTokens: call.maxTokens } : {}),
      ...(call.reasoning !== undefined && forms.reasoning < 3
        ? { thinkingConfig: thinkingConfig(call.model, call.reasoning, forms.reasoning) }
        : {}),
      ...(format && forms.format <= SCHEMA_FORMS ? { responseMimeType: "application/json" } : {}),
    });
    const fields = JSON.stringify({
      ...(call.prompt.system === "" ? {} : { systemInstruction: { parts: [{ text: call.prompt.system }] } }),
      ...(call.tools ? { toolConfig: { functionCallingConfig: callingConfig(call.tools) } } : {}),
    });
    const spoken = withRawMember(fields, "contents", `[${contents(call).join(",")}]`);
    const body = call.tools ? withRawMember(spoken, "tools", toolsText(call.tools)) : spoken;
    const given = format?.type === "schema" ? withRawMember(config, "responseJsonSchema", format.schema) : config;
    const method = call.streamed ? "streamGenerateContent?alt=sse" : "generateContent";
    return {
      path: `/models/${encodeURI(call.model)}:${method}`,
      body: given === "{}" ? body : withRawMember(body, "generationConfig", given),
    };
  },

  readEvent(data, into) {
    readResponse(parseObject(data), into, () => new JsonText(data));
  },

  readWhole(body, into) {
    const json = parseObject(body);
    // A stream that is not asked for as events is a list.
    const text = new JsonText(body);
    if (Array.isArray(json))
      for (const [at, response] of json.entries()) readResponse(object(response), into, () => text, [at]);
    else readResponse(json, into, () => text);
    if (!into.isFinished && !into.isWhole) throw unreadable();
    into.isWhole = true;
  },

  // The status of an invalid or expired key is 400.
  // Google refuses keys, and accounts that may not use the API from their country, as invalid requests.
  statusOf: ({ code }) => (code === "API_KEY_INVALID" ? 401 : code === "FAILED_PRECONDITION" ? 403 : undefined),

  readError(body) {
    // Some errors come as a list of one.
    const json = looseObject(body);
    return describe(object(object(list(json)[0] ?? json).error));
  },
};

/**
 * The only mode takes any schema, and ignores the keywords that it does not know. But it refuses what stands beside a
 * `$ref`, and a schema that contains itself in a required property.
 */
function takesStrictly(schema: string): boolean {
  if (!schema.includes("$ref")) return true;
  const root = parseJson(schema);
  const isAlone = (node: JsonNode) => membersOf(node).every(([name]) => name.startsWith("$"));
  return nodes(root).every((node) => !member(node, "$ref") || isAlone(node)) && !isRecursive(root);
}

/**
 * Form 0: as asked, form 1: `low` in place of `none`, which some models refuse; form 2: the same in the other field.
 */
function thinkingConfig(model: string, depth: Reasoning, form: number): JsonObject {
  const asked = depth === "none" && form > 0 ? "low" : depth;
  const takesBudget = TAKES_BUDGET.test(model) === form < 2;
  return takesBudget ? { thinkingBudget: BUDGETS[asked] } : { thinkingLevel: asked === "none" ? "minimal" : asked };
}

function contents({ model, prompt }: WireCall): string[] {
  return prompt.messages.map((message) => {
    const role = message.role === "user" ? "user" : "model";
    if (!message.calls && !message.results) return JSON.stringify({ role, parts: parts(message) });
    return `{"role":"${role}","parts":[${toolParts(message, model).join(",")}]}`;
  });
}

/**
 * Later models of the family demand a signature for the first call of a message, or this word for none. A name such as
 * `gemini-pro-latest` is that of the latest one.
 */
const SIGNED = /\bgemini-(?:[3-9]|\d\d|(?:[a-z]+-)+latest\b)/;
const UNSIGNED = ',"thoughtSignature":"skip_thought_signature_validator"';

/** The parts of a message with calls or results. Arguments are inserted as they are written. */
function toolParts(message: Message, model: string): string[] {
  const { text, images = [], calls = [], results = [] } = message;
  const answers = results.map(({ name, text: result }) =>
    JSON.stringify({ functionResponse: { name: sentName(name), response: { result } } }),
  );
  const others = text === "" && images.length === 0 ? [] : parts(message).map((part) => JSON.stringify(part));
  const asked = calls.map(({ name, arguments: given }, at) => {
    const called = withRawMember(JSON.stringify({ name: sentName(name) }), "args", given);
    return `{"functionCall":${called}${at === 0 && SIGNED.test(model) ? UNSIGNED : ""}}`;
  });
  return [...answers, ...others, ...asked];
}

/** Stands before a name that begins with a digit or a hyphen, which Gemini refuses. No tool of a caller has a dot. */
const PREFIX = "_.";

function sentName(name: string): string {
  return /^[\d-]/.test(name) ? `${PREFIX}${name}` : name;
}

function calledName(name: unknown): unknown {
  return typeof name === "string" && name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}

type WireTools = NonNullable<WireCall["tools"]>;

function callingConfig({ choice }: WireTools): JsonObject {
  if (typeof choice === "object") return { mode: "ANY", allowedFunctionNames: [sentName(choice.name)] };
  return { mode: { auto: "AUTO", none: "NONE", required: "ANY" }[choice] };
}

function toolsText({ list }: WireTools): string {
  const tools = list.map(({ name, description, parameters }) =>
    withRawMember(JSON.stringify({ name: sentName(name), description }), "parametersJsonSchema", parameters),
  );
  return `[{"functionDeclarations":[${tools.join(",")}]}]`;
}

function parts({ text, images = [] }: Message): unknown[] {
  const pictures = images.map(({ mediaType, data }) => ({
    inlineData: { mimeType: mediaType, data: Buffer.from(data).toString("base64") },
  }));
  return text === "" && pictures.length > 0 ? pictures : [...pictures, { text }];
}

/**
 * Reads a whole response or one event of a stream, which have the same form. The event with a reason is the terminal
 * frame if usage has come with it; otherwise a later one may have the usage, and nothing else.
 * @param source gives the text in which the response is at `path`
 */
function readResponse(json: JsonObject, into: Collector, source: () => JsonText, path: (string | number)[] = []): void {
  const usage = object(json.usageMetadata);
  if (into.isFinished) {
    readUsage(usage, into);
    into.isWhole = json.usageMetadata !== undefined;
    return;
  }
  if (json.error) throw frameFailure(describe(object(json.error)), object(json.error).code);
  into.identify(json.modelVersion);
  const candidate = object(list(json.candidates)[0]);
  for (const [at, part] of list(object(candidate.content).parts).entries()) {
    const { text, thought, functionCall } = object(part);
    if (thought === true) into.thinks = true;
    else into.write(text);
    if (!functionCall) continue;
    // Each call comes whole. Its arguments are taken from the text, because numbers lose digits when they are parsed.
    const given = source().at([...path, "candidates", 0, "content", "parts", at, "functionCall", "args"]);
    into.writeCall({}, { name: calledName(object(functionCall).name), text: given });
  }
  readUsage(usage, into);
  if (object(json.promptFeedback).blockReason) {
    into.refuse();
    into.isWhole = true;
  }
  readEnd(candidate, into);
  if (into.isFinished && json.usageMetadata !== undefined) into.isWhole = true;
}

const ENDS: Readonly<Record<string, EndReason>> = {
  STOP: "stop",
  MAX_TOKENS: "length",
  CONTINUATION: "length",
  SAFETY: "content_filter",
  RECITATION: "content_filter",
  BLOCKLIST: "content_filter",
  PROHIBITED_CONTENT: "content_filter",
  SPII: "content_filter",
  MODEL_ARMOR: "content_filter",
  IMAGE_SAFETY: "content_filter",
  IMAGE_PROHIBITED_CONTENT: "content_filter",
  IMAGE_RECITATION: "content_filter",
};
const FAILED = /ERROR|MALFORMED|UNEXPECTED|TOO_MANY/;

function readEnd({ finishReason: reason }: JsonObject, into: Collector): void {
  if (typeof reason !== "string" || reason === "" || reason === "FINISH_REASON_UNSPECIFIED") return;
  if (FAILED.test(reason)) {
    throw new ModelError("The vendor reports that the completion failed.", { retryable: true });
  }
  into.finish(endReason(ENDS, reason));
}

function readUsage(usage: JsonObject, into: Collector): void {
  if (Object.keys(usage).length === 0) return;
  const { candidatesTokenCount: written, thoughtsTokenCount: thoughts } = usage;
  const output = tokenCount(written) + tokenCount(thoughts);
  into.report({
    inputTokens: usage.promptTokenCount,
    cachedTokens: usage.cachedContentTokenCount,
    ...(output > 0 ? { outputTokens: output } : {}),
    thinkingTokens: thoughts,
  });
}

function describe({ message, status, details }: JsonObject): WireError {
  const words = wordsOf(status, message);
  const isTooLong = /input token count.*exceeds|exceeds the maximum number of tokens/i.test(words);
  return {
    about: words,
    code: object(list(details)[0]).reason ?? status,
    ...(isTooLong ? { kind: "too_long" as const } : {}),
    ...waitIn(details, words),
  };
}
