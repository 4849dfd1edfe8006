import { hash } from "node:crypto";
import { toBinary } from "@bufbuild/protobuf";
import { type GenerateRequest, GenerateRequestSchema } from "../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../contract/failure.ts";
import { Encoding } from "../engine/tokens/bpe.ts";
import type { Message } from "../models/port/model.ts";
import { type CheckedRequest, checkRequest, type ReadOptions } from "./validate-request.ts";

export type { ReadOptions } from "./validate-request.ts";

/** What a request says, checked and counted. It depends on the request alone, so any thread can find it. */
export interface ReadRequest {
  readonly checked: CheckedRequest;
  /** Tokens of the prompt, messages, system, schema and tools. */
  readonly textTokens: number;
  /** SHA-256 of the request in hex; undefined unless it has an idempotency key. */
  readonly digest: string | undefined;
}

/**
 * Longest text of a request in characters (Unicode code points): prompt, messages, system, schema, tools and stop
 * sequences together. It is about a million tokens of English. A longer text would hold the event loop while it is
 * written for a model.
 */
const MAX_TEXT = 4_000_000;

/**
 * Checks a request and counts its text.
 * @param count counts the tokens of a text
 * @throws Failure naming the field; `request_too_long` above 4,000,000 characters of text
 */
export function readRequest(
  request: GenerateRequest,
  options: ReadOptions,
  count: (text: string) => number,
): ReadRequest {
  const checked = checkRequest(request, options);
  const texts = textsOf(checked);
  if (isLonger([...texts, ...checked.stops], MAX_TEXT)) {
    const most = MAX_TEXT.toLocaleString("en");
    const message = `The text of a request may have ${most} characters in total. Send a shorter one.`;
    throw new Failure("request_too_long", { field: checked.promptField, message });
  }
  const digest = options.isRepeatable ? digestOf(request) : undefined;
  return { checked, textTokens: texts.reduce((sum, text) => sum + count(text), 0), digest };
}

/** Creates a `readRequest` for a worker thread, with a tokenizer that it loads at the first request. */
export function createRequestReading(): (request: GenerateRequest, options: ReadOptions) => ReadRequest {
  let encoding: Encoding | undefined;
  return (request, options) =>
    readRequest(request, options, (text) => {
      encoding ??= new Encoding();
      return encoding.count(text);
    });
}

/** Whether texts have more characters together than `max`. */
function isLonger(texts: readonly string[], max: number): boolean {
  // Texts never have more code points than UTF-16 units, so most requests need no exact count.
  if (texts.reduce((sum, text) => sum + text.length, 0) <= max) return false;
  let count = 0;
  for (const text of texts) for (const _ of text) if (++count > max) return true;
  return false;
}

function textsOf({ conversation, schema = "", tools }: CheckedRequest): string[] {
  const texts = [...conversation.system, ...conversation.messages.flatMap(textsOfMessage), schema];
  for (const { name, description, parameters } of tools?.list ?? []) texts.push(name, description, parameters);
  return texts.filter((text) => text !== "");
}

function textsOfMessage({ text, calls, results }: Message): string | string[] {
  if (!calls && !results) return text;
  const called = calls?.flatMap(({ name, arguments: given }) => [name, given]) ?? [];
  return [text, ...called, ...(results?.map((result) => result.text) ?? [])];
}

/** Protobuf writes a map in the order of its members, which means nothing, so they are sorted. */
function digestOf(request: GenerateRequest): string {
  const tags = Object.fromEntries(Object.entries(request.tags).sort());
  return hash("sha256", toBinary(GenerateRequestSchema, { ...request, tags }));
}
