import type { EndReason } from "../port/model.ts";
import { type ModelError, unreadable } from "../port/model-error.ts";
import { describe } from "./openai-reply.ts";
import {
  type Collector,
  endReason,
  frameFailure,
  type JsonObject,
  list,
  object,
  parseObject,
  tokenCount,
} from "./wire.ts";

/** The phase of a message with which a model accompanies its work. The last event of a stream has it once more. */
const ASIDE = "commentary";

/**
 * Reads an event of a stream. Text and arguments come in deltas, then whole in up to three events: these count if no
 * delta has come.
 */
export function readEvent(data: string, into: Collector): void {
  const json = parseObject(data);
  const { type, delta, output_index: index } = json;
  // OpenAI documents an error as members of the event, and sends it as an object.
  if (type === "error" || json.error) throw failure(json.error ?? { ...json, type: undefined });
  into.identify(object(json.response).model);
  const item = object(json.item);
  const key = index ?? json.item_id ?? item.id;
  if (item.phase === ASIDE) into.aside = key;
  if (key !== undefined && key === into.aside) return;
  switch (type) {
    case "response.output_text.delta":
      if (delta) into.lastPart = Math.max(into.lastPart, placeOf(json));
      into.write(delta);
      return;
    case "response.output_text.done":
      readText(json.text, placeOf(json), into);
      return;
    case "response.content_part.done":
      readPart(object(json.part), placeOf(json), into);
      return;
    case "response.refusal.delta":
    case "response.refusal.done":
      if (delta || json.refusal) into.refuse();
      return;
    case "response.output_item.added":
      if (item.type === "function_call") into.writeCall(key, { name: item.name });
      return;
    case "response.function_call_arguments.delta":
      into.writeCall(key, { text: delta });
      return;
    case "response.function_call_arguments.done":
      into.writeCall(key, { whole: json.arguments });
      return;
    case "response.output_item.done":
      readItem(item, key, into);
      return;
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      readResponse({ status: type.slice("response.".length), ...object(json.response) }, into);
      return;
    default:
      if (typeof type === "string" && type.startsWith("response.reasoning")) into.thinks = true;
  }
}

/** Reads a whole reply. */
export function readWhole(body: string, into: Collector): void {
  const json = parseObject(body);
  if (json.error) throw failure(json.error);
  if (!Array.isArray(json.output)) throw unreadable();
  into.identify(json.model);
  readResponse(json, into);
}

const ENDS: Readonly<Record<string, EndReason>> = { max_output_tokens: "length", content_filter: "content_filter" };
/** A response that is still running is none that can be waited for. */
const FAILED: ReadonlySet<unknown> = new Set(["failed", "cancelled", "queued", "in_progress"]);

/**
 * Reads a whole response. Of the one at the end of a stream, only what the events before it have not brought. Of its
 * messages, those of the answer, or all if there is none.
 */
function readResponse(response: JsonObject, into: Collector): void {
  const { status, error, incomplete_details: details, usage } = response;
  if (error || FAILED.has(status)) throw failure(error);
  const isCalled = into.calls.length > 0;
  const isWritten = into.lastPart >= 0;
  const items = list(response.output).map(object);
  const isAnswered = items.some(({ type, phase }) => type === "message" && phase !== ASIDE);
  for (const [at, item] of items.entries()) {
    const isLeft = item.type === "function_call" ? !isCalled : !isWritten;
    if (isLeft && !(isAnswered && item.phase === ASIDE)) readItem(item, at, into);
  }
  if (usage) readUsage(object(usage), into);
  into.finish(status === "completed" ? "stop" : endReason(ENDS, String(object(details).reason)));
  into.isWhole = true;
}

/** Reads a whole item of the output. Of reasoning, only that there is some. The vendor's own tools are not read. */
function readItem(item: JsonObject, key: unknown, into: Collector): void {
  const { type, content, summary } = item;
  if (type === "function_call") into.writeCall(key, { name: item.name, whole: item.arguments });
  else if (type === "reasoning" && list(summary).length + list(content).length > 0) into.thinks = true;
  else if (type === "message")
    for (const [at, part] of list(content).entries())
      readPart(object(part), placeOf({ output_index: key, content_index: at }), into);
}

function readPart({ type, text, refusal }: JsonObject, place: number, into: Collector): void {
  if (type === "output_text") readText(text, place, into);
  else if (type === "refusal" && refusal) into.refuse();
}

/** Reads the whole text of a part, if none of it has been read. */
function readText(text: unknown, place: number, into: Collector): void {
  if (!text || place <= into.lastPart) return;
  into.lastPart = place;
  into.write(text);
}

/** The place of a part among all parts of a reply, which come in this order. */
function placeOf({ output_index: item, content_index: part }: JsonObject): number {
  return tokenCount(item) * 1_000_000 + tokenCount(part);
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
