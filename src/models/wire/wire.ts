import type { ModelEntry } from "../port/entry.ts";
import type { EndReason, Prompt, Reasoning, Tool, Tools } from "../port/model.ts";
import { ModelError, type ModelErrorInit, mayPass, unreadable } from "../port/model-error.ts";
import type { Collector } from "./collector.ts";

/** Parts of a call that a model may refuse. The call still works without them. */
export type Option =
  | ("temperature" | "stops" | "maxTokens" | "format" | "reasoning" | "cacheKey" | "usage")
  | ("strictTools" | "toolChoice" | "parallel")
  // A text of the user that follows the results of tools directly. It is never left out.
  | "toolTurn"
  // Instructions apart from the messages; else they are in the first message. They are never left out.
  | "system"
  // Messages of the assistant without its thinking, which is not kept; else a sign stands for it, or for its signature.
  | ("thoughts" | "signature")
  // Reasoning and format in a call with tools, where a model may take each of the two, but not both.
  | ("toolReasoning" | "toolFormat");

/**
 * The form in which each option is sent. 0 is the first form; each refusal moves on to the next. After the last form
 * the option is left out. A JSON Schema is sent as such in the forms below `SCHEMA_FORMS`, then in the prompt.
 */
export type Forms = Readonly<Record<Option, number>>;

/** 0: in the strict mode if that takes the schema; 1: as `otherSchemas` says. */
export const SCHEMA_FORMS = 2;

/** A call as a wire format writes it. */
export interface WireCall {
  model: string;
  prompt: Prompt;
  /** Ceiling of the output, thinking included, in tokens. */
  maxTokens: number | undefined;
  temperature: number | undefined;
  stops: readonly string[];
  /** `schema` is JSON text and is sent unchanged. `strict`: in the vendor's strict mode, which takes it as it is. */
  format: { type: "json" } | { type: "schema"; schema: string; strict: boolean } | undefined;
  /** `strict`: the vendor's strict mode takes the schema of the tool as it is. */
  tools: (Omit<Tools, "list"> & { readonly list: readonly (Tool & { readonly strict: boolean })[] }) | undefined;
  reasoning: Reasoning | undefined;
  streamed: boolean;
  cacheKey: string | undefined;
}

export interface WireRequest {
  /** Path and query below the vendor's base address. */
  path: string;
  body: string;
}

/** What the body of an error says. */
export interface WireError extends Pick<ModelErrorInit, "kind" | "retryAfterMs"> {
  /** Whether a retry may succeed. Absent: the status decides. */
  retryable?: boolean;
  /** The vendor's words. They show which option it refused. Callers never see them. */
  about: string;
  /** The vendor's code of the failure, such as `invalid_api_key`. May be anything. */
  code?: unknown;
  /** The parameter that the vendor names. If it is set, it alone shows which option was refused. */
  param?: string;
}

/** One vendor's wire format. It has no state; it reads into a `Collector`. */
export interface WireFormat {
  /** Word of the API for people: as in the catalogue, where that has one. */
  readonly api: "chat" | "responses" | "messages" | "generate_content";
  /** Base address. The path is used if a configured address has none. */
  readonly base: { readonly host: string; readonly path: string };
  /** Number of forms of each option; 0: the format has no such option. */
  readonly forms: Forms;
  /** Patterns that find each option in the words of a refusal. */
  readonly optionNames: Readonly<Partial<Record<Option, RegExp>>>;
  /** Whether a call that asks for `reasoning` needs room to think, even if the model has not yet reported thinking. */
  readonly needsRoomWhenAsked: boolean;
  /** Whether a call with this prompt, in these forms, is sent without thinking whatever it asks for. Default: never. */
  readonly cannotThink?: (prompt: Prompt, forms: Forms) => boolean;
  /** Whether a call with a temperature must not ask for `reasoning`: the vendor takes only one of the two. */
  readonly temperatureOrReasoning: boolean;
  /**
   * Ceiling of the output in tokens where neither the call nor the catalogue sets one; absent if the format needs none.
   */
  readonly defaultMaxTokens?: number;
  /** Whether the vendor's strict mode takes a JSON Schema as it is written. */
  takesStrictly(schema: string): boolean;
  /** How a JSON Schema that the strict mode does not take is sent: in another mode, as a tool, or in the prompt. */
  readonly otherSchemas: "mode" | "tool" | "prompt";
  /** Headers of every request, which have the key. */
  headers(entry: ModelEntry): Record<string, string>;
  request(entry: ModelEntry, call: WireCall, forms: Forms): WireRequest;
  /** Reads the data of one event of a stream. @throws ModelError for an error frame or data that cannot be read */
  readEvent(data: string, into: Collector): void;
  /** Reads the body of a whole completion. @throws ModelError when it cannot be read */
  readWhole(body: string, into: Collector): void;
  /** The status that a failure should have, where the vendor sends another one. */
  statusOf?(error: WireError): number | undefined;
  /** Reads the body of an error; it may be any text. */
  readError(body: string): WireError;
}

/** Longest text of an error that is searched, in characters. */
const MAX_WORDS = 4_000;

/** The words of an error, bounded: a vendor may send any text, and patterns are searched in it. */
export function wordsOf(...parts: unknown[]): string {
  return parts
    .map((part) => String(typeof part === "object" ? "" : part))
    .join(" ")
    .slice(0, MAX_WORDS);
}

/** Google's words for a model of which the account's plan allows no call. It names a wait all the same. */
const NO_QUOTA = /quota exceeded for metric: \S+ limit: 0\b/i;

/** The wait in the details of Google's errors: google.rpc.RetryInfo, whose delay reads "34.07s". */
export function waitIn(details: unknown, words: string): Pick<WireError, "retryAfterMs" | "retryable"> {
  if (NO_QUOTA.test(words)) return { retryable: false };
  const seconds = list(details).map((detail) => Number.parseFloat(String(object(detail).retryDelay ?? "")));
  const wait = seconds.find((each) => each >= 0);
  return wait === undefined ? {} : { retryAfterMs: wait * 1_000 };
}

/**
 * The failure that an error inside a response with status 200 stands for.
 * @param status what the vendor names in place of an HTTP status; anything but a number from 400 to 599 is ignored
 */
export function frameFailure({ about, code, kind, retryable, retryAfterMs }: WireError, status?: unknown): ModelError {
  const known = typeof status === "number" && status >= 400 && status <= 599 ? Math.floor(status) : undefined;
  return new ModelError("The vendor sent an error.", {
    retryable: kind === undefined && (retryable ?? (known === undefined || mayPass(known))),
    retryAfterMs,
    status: known,
    code,
    kind,
    cause: about.slice(0, 1_000),
  });
}

/** The end that a vendor's word stands for. @param ends a table of words */
export function endReason(ends: Readonly<Record<string, EndReason>>, word: string): EndReason {
  return (Object.hasOwn(ends, word) ? ends[word] : undefined) ?? "unknown";
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** The value if it is an object; otherwise an empty object, so that members can be read. */
export function object(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The JSON object in a text. @throws ModelError for text that is no JSON */
export function parseObject(text: string): JsonObject {
  try {
    return object(JSON.parse(text));
  } catch (error) {
    throw unreadable(error);
  }
}

/** Parses the body of an error, which may be any text. @returns an empty object if it is not a JSON object */
export function looseObject(text: string): JsonObject {
  try {
    return object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Adds a member to the text of a JSON object. Its value is JSON text and is not changed. */
export function withRawMember(body: string, name: string, value: string): string {
  return `${body.slice(0, -1)}${body === "{}" ? "" : ","}${JSON.stringify(name)}:${value}}`;
}
