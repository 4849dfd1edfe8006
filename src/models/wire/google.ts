import type { EndReason, Message, Reasoning } from "../port/model.ts";
import { ModelError, unreadable } from "../port/model-error.ts";
import {
  type Collector,
  endReason,
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

/** Thinking in tokens, for models that take no level. */
const BUDGETS: Readonly<Record<Reasoning, number>> = { none: 0, low: 1_024, medium: 8_192, high: 24_576 };
/** Models that take a budget. Later ones take a level: they refuse a budget, or follow it badly. */
const TAKES_BUDGET = /\bgemini-[12]\b/;

/** Gemini's generateContent; docs/reference/wire-formats.md lists every field. Its cache needs no marks. */
export const google: WireFormat = {
  base: { host: "https://generativelanguage.googleapis.com", path: "/v1beta" },
  // format: the schema, any JSON. reasoning: see `thinkingConfig`.
  forms: { temperature: 1, stops: 1, maxTokens: 1, format: SCHEMA_FORMS + 1, reasoning: 3, cacheKey: 0, usage: 0 },
  optionNames: {
    temperature: /\btemperature\b/i,
    stops: /\bstop_?sequences\b/i,
    maxTokens: /\bmax_?output_?tokens\b/i,
    format: /\bresponse_?(mime_?type|json_?schema|schema)\b|\bschema\b/i,
    reasoning: /\bthinking(_?config|_?budget|_?level)?\b|\bbudget\b/i,
  },
  needsRoomWhenAsked: true,
  temperatureOrReasoning: false,
  // The only mode takes any schema, and ignores the keywords that it does not know.
  takesStrictly: () => true,

  request(entry, call, forms) {
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
    const body = JSON.stringify({
      ...(call.prompt.system === "" ? {} : { systemInstruction: { parts: [{ text: call.prompt.system }] } }),
      contents: contents(call),
    });
    const given = format?.type === "schema" ? withRawMember(config, "responseJsonSchema", format.schema) : config;
    const method = call.streamed ? "streamGenerateContent?alt=sse" : "generateContent";
    return {
      path: `/models/${encodeURI(call.model)}:${method}`,
      headers: { "x-goog-api-key": entry.apiKey ?? "" },
      body: given === "{}" ? body : withRawMember(body, "generationConfig", given),
    };
  },

  readEvent(data, into) {
    readResponse(parseObject(data), into);
  },

  readWhole(body, into) {
    const json = parseObject(body);
    // A stream that is not asked for as events is a list.
    for (const response of Array.isArray(json) ? json : [json]) readResponse(object(response), into);
    if (!into.isFinished && !into.isWhole) throw unreadable();
    into.isWhole = true;
  },

  readError(body) {
    // Some errors come as a list of one.
    const json = looseObject(body);
    return describe(object(object(list(json)[0] ?? json).error));
  },
};

/**
 * Form 0: as asked, form 1: `low` in place of `none`, which some models refuse; form 2: the same in the other field.
 */
function thinkingConfig(model: string, depth: Reasoning, form: number): JsonObject {
  const asked = depth === "none" && form > 0 ? "low" : depth;
  const takesBudget = TAKES_BUDGET.test(model) === form < 2;
  return takesBudget ? { thinkingBudget: BUDGETS[asked] } : { thinkingLevel: asked === "none" ? "minimal" : asked };
}

function contents({ prompt }: WireCall): unknown[] {
  return prompt.messages.map((message) => ({
    role: message.role === "user" ? "user" : "model",
    parts: parts(message),
  }));
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
 */
function readResponse(json: JsonObject, into: Collector): void {
  const usage = object(json.usageMetadata);
  if (into.isFinished) {
    readUsage(usage, into);
    into.isWhole = json.usageMetadata !== undefined;
    return;
  }
  if (json.error) throw frameFailure(describe(object(json.error)), object(json.error).code);
  into.identify(json.modelVersion);
  const candidate = object(list(json.candidates)[0]);
  for (const part of list(object(candidate.content).parts)) {
    const { text, thought } = object(part);
    if (thought === true) into.thinks = true;
    else into.write(text);
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
  if (Number(thoughts) > 0) into.thinks = true;
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
  // google.rpc.RetryInfo, whose delay reads "34.07s".
  const seconds = list(details).map((detail) => Number.parseFloat(String(object(detail).retryDelay ?? "")));
  const wait = seconds.find((each) => each >= 0);
  return {
    about: words,
    ...(isTooLong ? { kind: "too_long" as const } : {}),
    ...(wait === undefined ? {} : { retryAfterMs: wait * 1_000 }),
  };
}
