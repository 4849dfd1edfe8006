import type { ModelEntry } from "../port/entry.ts";
import type { EndReason, Prompt, Reasoning, TokenUsage, Tool, Tools, WrittenCall } from "../port/model.ts";
import { ModelError, type ModelErrorInit, mayPass, unreadable } from "../port/model-error.ts";
import { ThinkFilter, type Unopened } from "./think.ts";

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

/** 0: in the strict mode if that takes the schema; 1: in the mode that takes any. */
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
  /** Whether a call with a temperature must not ask for `reasoning`: the vendor takes only one of the two. */
  readonly temperatureOrReasoning: boolean;
  /**
   * Ceiling of the output in tokens where neither the call nor the catalogue sets one; absent if the format needs none.
   */
  readonly defaultMaxTokens?: number;
  /** Whether the vendor's strict mode takes a JSON Schema as it is written. */
  takesStrictly(schema: string): boolean;
  /** Whether a JSON Schema that the strict mode does not take is sent as a tool. */
  readonly sendsSchemaAsTool: boolean;
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

/** Bound of reported counts. No model has a context window of that size. */
const MAX_TOKENS = 1_000_000_000;

/** Turns a vendor's count into a whole number from 0 to a billion; anything else into 0. */
export function tokenCount(claim: unknown): number {
  return typeof claim === "number" && claim > 0 ? Math.min(MAX_TOKENS, Math.floor(claim)) : 0;
}

/** Most calls of one completion, and most characters of their arguments together. */
const MAX_CALLS = { count: 128, characters: 1_048_576 };

/** A model's name as vendors write it. */
const NAME = /^[\w.:/@+-]{1,100}$/;

/** Collects what a vendor sends for one call. */
export class Collector {
  #text = "";
  /** Undefined once the text has begun, because marks of thinking count only before it. */
  #think: ThinkFilter | undefined;
  /** Whether the text has thinking whose first mark is missing. */
  isUnopened = false;
  /** Undefined if the vendor has reported nothing. */
  #claims: Partial<Record<keyof TokenUsage, unknown>> | undefined;
  #reason: EndReason | undefined;
  #isRefused = false;
  /** Whether the terminal frame has arrived. Later events are not read. */
  isWhole = false;
  /** How much has been read of the input of the tool that takes the answer; `none` after another block. */
  toolInput: "none" | "empty" | "begun" = "none";
  /** Type of the event that has brought something first, where a format sends it again in events of other types. */
  readonly sources: Partial<Record<"text" | "names" | "arguments", string>> = {};
  /** Key of the last item of the output that is text only if there is no other. */
  aside: unknown;
  /** Whether the completion contains thinking. */
  thinks = false;
  /** What answers, as the vendor names it first. */
  version: string | undefined;
  /** Whether the caller's tools may be called. */
  readonly takesCalls: boolean;
  /** In the order in which they began. Undefined before the first. */
  #calls: { key: unknown; id: unknown; name: string; arguments: string }[] | undefined;
  #callCharacters = 0;

  constructor(takesCalls = false, unopened: Unopened = "no") {
    this.takesCalls = takesCalls;
    this.#think = new ThinkFilter(unopened);
  }

  /** The calls so far. */
  get calls(): readonly WrittenCall[] {
    return this.#calls?.map(({ name, arguments: given }) => ({ name, arguments: given })) ?? [];
  }

  /**
   * Adds a part of a call. Some servers send several calls under one key, with different identifiers; others send a
   * call in parts whose identifiers differ. Only a part with a name begins a call.
   * @param key the call's place; undefined: the last one, or a new one if the part has a name
   * @param part `name` counts once; `text` is a part of the arguments, as JSON text; `whole` are all of them, which
   *   count if no part of them has come
   * @throws ModelError if there are too many calls, or they are too long
   */
  writeCall(key: unknown, { id, name, text, whole }: Partial<Record<"id" | "name" | "text" | "whole", unknown>>): void {
    if (!this.takesCalls) return;
    this.#calls ??= [];
    const known = key === undefined ? this.#calls.at(-1) : this.#calls.findLast((call) => call.key === key);
    const isOther = isName(name) && isName(id) && isName(known?.id) && id !== known?.id;
    let call = key === undefined && isName(name) && known?.name ? undefined : known;
    if (!call || isOther) {
      call = { key, id, name: "", arguments: "" };
      this.#calls.push(call);
    }
    if (call.name === "" && isName(name)) call.name = name;
    const given = call.arguments === "" ? (text ?? whole) : text;
    if (typeof given === "string") call.arguments += given;
    this.#callCharacters += typeof given === "string" ? given.length : 0;
    if (this.#calls.length > MAX_CALLS.count || this.#callCharacters > MAX_CALLS.characters)
      throw new ModelError("The calls of the model are too many or too long.", { retryable: false });
  }

  /** Notes what answers. Skips anything that is no plain name of at most 100 characters. */
  identify(name: unknown): void {
    if (this.version === undefined && typeof name === "string" && NAME.test(name)) this.version = name;
  }

  /** Adds text. Skips anything that is not a string. */
  write(text: unknown): void {
    if (typeof text !== "string" || text === "") return;
    if (this.thinks && this.#think?.hasThought === false) this.#text += this.#think.trust();
    this.#text += this.#think ? this.#think.push(text) : text;
    if (this.#think?.hasThought) {
      this.thinks = true;
      this.isUnopened = this.#think.isUnopened;
    }
    if (this.#think?.isOver) this.#think = undefined;
  }

  /** Removes and returns the text since the last call. */
  take(): string {
    if (this.isWhole) this.#text += this.#think?.end(this.#reason === "length") ?? "";
    const text = this.#text;
    this.#text = "";
    return text;
  }

  /** Notes a refusal by the model or a filter. */
  refuse(): void {
    this.#isRefused = true;
  }

  /** Notes why the completion ended. Only the first reason counts. */
  finish(reason: EndReason): void {
    this.#reason ??= reason;
  }

  /** Whether the vendor has said why the completion ended. Only usage may follow, and the terminal frame. */
  get isFinished(): boolean {
    return this.#reason !== undefined;
  }

  /** Notes reported usage. Later counts replace earlier ones; absent ones change nothing. */
  report(claims: Partial<Record<keyof TokenUsage, unknown>>): void {
    if (Number(claims.thinkingTokens) > 0) this.thinks = true;
    for (const name of ["inputTokens", "cachedTokens", "outputTokens", "thinkingTokens"] as const) {
      if (claims[name] === undefined || claims[name] === null) continue;
      this.#claims ??= {};
      this.#claims[name] = claims[name];
    }
  }

  get reason(): EndReason {
    return this.#isRefused ? "content_filter" : (this.#reason ?? "unknown");
  }

  /** Undefined if the vendor reported none. */
  get usage(): TokenUsage | undefined {
    if (!this.#claims) return undefined;
    const inputTokens = tokenCount(this.#claims.inputTokens);
    const outputTokens = tokenCount(this.#claims.outputTokens);
    return {
      inputTokens,
      cachedTokens: Math.min(inputTokens, tokenCount(this.#claims.cachedTokens)),
      outputTokens,
      thinkingTokens: Math.min(outputTokens, tokenCount(this.#claims.thinkingTokens)),
    };
  }
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
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
