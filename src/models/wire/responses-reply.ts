import type { EndReason } from "../port/model.ts";
import { type ModelError, unreadable } from "../port/model-error.ts";
import type { Collector } from "./collector.ts";
import { describe } from "./openai-reply.ts";
import { endReason, frameFailure, type JsonObject, list, object, parseObject } from "./wire.ts";

/** The phase of a message with which a model accompanies its work. The last event of a stream has it once more. */
const ASIDE = "commentary";

/**
 * Reads an event of a stream. Text and arguments come in deltas, then whole in up to three events. Those of the type
 * that has brought any first count alone, because servers do not agree on the places and identifiers by which the
 * others could be found: vLLM and llama.cpp have several or none for the same part.
 */
export function readEvent(data: string, into: Collector): void {
  const json = parseObject(data);
  const { type, delta } = json;
  // OpenAI documents an error as members of the event, and sends it as an object.
  if (type === "error" || json.error) throw failure(json.error ?? { ...json, type: undefined });
  if (typeof type !== "string") return;
  into.identify(object(json.response).model);
  const item = object(json.item);
  const key = json.output_index ?? json.item_id ?? item.id ?? item.call_id;
  const isAside = item.phase === ASIDE;
  if (type === "response.output_item.added" && (isAside || key === into.aside)) into.aside = isAside ? key : undefined;
  if (isAside || (key !== undefined && key === into.aside)) return;
  switch (type) {
    case "response.output_text.delta":
      readText(delta, type, into);
      return;
    case "response.output_text.done":
      readText(json.text, type, into);
      return;
    case "response.content_part.done":
      readPart(object(json.part), type, into);
      return;
    case "response.refusal.delta":
    case "response.refusal.done":
      if (delta || json.refusal) into.refuse();
      return;
    case "response.output_item.added":
      if (item.type === "function_call") readCall({ ...item, arguments: "" }, key, type, into);
      return;
    case "response.function_call_arguments.delta":
      if (brings("arguments", delta, type, into)) into.writeCall(key, { text: delta });
      return;
    case "response.function_call_arguments.done":
      readCall({ arguments: json.arguments }, key, type, into);
      return;
    case "response.output_item.done":
      readItem(item, key, type, into);
      return;
    case "response.completed":
    case "response.done":
      readResponse({ status: "completed", ...object(json.response) }, type, into);
      return;
    case "response.incomplete":
      readResponse({ status: "incomplete", ...object(json.response) }, type, into);
      return;
    case "response.failed":
      readResponse({ status: "failed", ...object(json.response) }, type, into);
      return;
    default:
      if (type.startsWith("response.reasoning")) into.thinks = true;
  }
}

/** Reads a whole reply. */
export function readWhole(body: string, into: Collector): void {
  const json = parseObject(body);
  if (json.error) throw failure(json.error);
  if (!Array.isArray(json.output)) throw unreadable();
  into.identify(json.model);
  readResponse(json, "response", into);
}

/** OpenAI's first; the others are those of xAI, Volcengine and proxies. */
const ENDS: Readonly<Record<string, EndReason>> = {
  max_output_tokens: "length",
  max_tokens: "length",
  length: "length",
  content_filter: "content_filter",
};
/** A response that is still running is none that can be waited for. */
const FAILED: ReadonlySet<unknown> = new Set(["failed", "cancelled", "queued", "in_progress"]);

/**
 * Reads a whole response. Of the one at the end of a stream, only what the events before it have not brought. Of its
 * messages, those of the answer. If there is none, what the model says beside its work counts, but not if it was cut
 * off before it called a tool or answered.
 */
function readResponse(response: JsonObject, event: string, into: Collector): void {
  const { status, error, incomplete_details: details, usage } = response;
  if (error || FAILED.has(status)) throw failure(error);
  const isCalled = into.calls.length > 0;
  const items = list(response.output).map(object);
  const isAnswered = items.some(({ type, phase }) => type === "message" && phase !== ASIDE);
  const isCutOff = status === "incomplete" && !isCalled && !items.some(({ type }) => type === "function_call");
  for (const [at, item] of items.entries()) {
    const isKnown = item.type === "function_call" && isCalled;
    const isDropped = item.phase === ASIDE && (isAnswered || isCutOff);
    if (!isKnown && !isDropped) readItem(item, at, event, into);
  }
  if (usage) readUsage(object(usage), into);
  into.finish(status === "completed" ? "stop" : endReason(ENDS, String(object(details).reason)));
  into.isWhole = true;
}

/** Reads a whole item of the output. Of reasoning, only that there is some. The vendor's own tools are not read. */
function readItem(item: JsonObject, key: unknown, event: string, into: Collector): void {
  const { type, content, summary } = item;
  if (type === "function_call") readCall(item, key, event, into);
  else if (type === "reasoning" && list(summary).length + list(content).length > 0) into.thinks = true;
  else if (type === "message") for (const part of list(content)) readPart(object(part), event, into);
}

/** Reads a call with all its arguments. */
function readCall(item: JsonObject, key: unknown, event: string, into: Collector): void {
  const { name, call_id: id, arguments: whole } = item;
  if (brings("names", name, event, into)) into.writeCall(key, { id, name });
  if (brings("arguments", whole, event, into)) into.writeCall(key, { whole });
}

function readPart({ type, text, refusal }: JsonObject, event: string, into: Collector): void {
  if (type === "output_text") readText(text, event, into);
  else if (type === "refusal" && refusal) into.refuse();
}

function readText(text: unknown, event: string, into: Collector): void {
  if (brings("text", text, event, into)) into.write(text);
}

/** Whether an event brings something that events of other types repeat. */
function brings(what: keyof Collector["sources"], value: unknown, event: string, { sources }: Collector): boolean {
  if (typeof value !== "string" || value === "") return false;
  sources[what] ??= event;
  return sources[what] === event;
}

function readUsage(usage: JsonObject, into: Collector): void {
  into.report({
    inputTokens: usage.input_tokens,
    cachedTokens: object(usage.input_tokens_details).cached_tokens,
    outputTokens: usage.output_tokens,
    thinkingTokens: object(usage.output_tokens_details).reasoning_tokens,
  });
}

/** Statuses of the codes of a failure in a response with status 200, by their words. */
const STATUSES: readonly (readonly [code: RegExp, status: number])[] = [
  [/rate_limit|too_many_requests|quota/, 429],
  [/overloaded|slow_down|unavailable/, 503],
  [/server_error|timeout/, 500],
  [/invalid|image|mismatch/, 400],
];

function failure(error: unknown): ModelError {
  const said = describe(object(error), String(error));
  const code = String(said.code);
  return frameFailure(said, STATUSES.find(([words]) => words.test(code))?.[1] ?? said.code);
}
