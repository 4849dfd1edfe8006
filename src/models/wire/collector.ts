import type { EndReason, TokenUsage, WrittenCall } from "../port/model.ts";
import { ModelError } from "../port/model-error.ts";
import { ThinkFilter, type Unopened } from "./think.ts";

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
  /** Whether the vendor reports thinking. */
  thinks = false;
  /** Whether any text has arrived, also thinking or white space. */
  hasText = false;
  /** Whether the text begins with thinking. Any model writes that, if its prompt asks for it. */
  isMarked = false;
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
    this.hasText = true;
    if (this.thinks && this.#think?.hasThought === false) this.#text += this.#think.trust();
    this.#text += this.#think ? this.#think.push(text) : text;
    if (this.#think?.hasThought) {
      this.isMarked = true;
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
