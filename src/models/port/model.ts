import type { Signal } from "../../concurrency/abort.ts";
import type { Requester } from "../../concurrency/breaker.ts";
import type { NextPart, Parts } from "../../concurrency/parts.ts";
import type { Level, Tier } from "../../contract/terms.ts";

/** An image that belongs to a user's message. */
export interface Image {
  mediaType: string;
  data: Uint8Array;
}

/** A function that a model may ask for. Callers run it. */
export interface Tool {
  readonly name: string;
  /** Empty for none. */
  readonly description: string;
  /** JSON Schema of the arguments, an object, as JSON text. A vendor gets it unchanged, except what it refuses. */
  readonly parameters: string;
  /** The schema with `"items":{}` in each array that says nothing of its elements. Absent: there is none. */
  readonly itemised?: string;
  /** Names of the members of the schema's root, if its type is `object`. Absent: it is not, or is not known. */
  readonly rootNames?: readonly string[];
}

/** The tools of a request, at least one, and whether a model may or must ask for them. */
export interface Tools {
  readonly list: readonly Tool[];
  /** An object: the one tool that must be called. */
  readonly choice: "auto" | "none" | "required" | { readonly name: string };
  /** Whether a model may ask for several calls at once. */
  readonly parallel: boolean;
}

/** A call that a model has asked for. */
export interface ToolCall {
  /** In a prompt it is the same for the call and its result, and different for each call. */
  readonly id: string;
  readonly name: string;
  /** JSON text of an object; in a completion what the model wrote, which may be any text. */
  readonly arguments: string;
}

/** What a call has given. */
export interface ToolResult {
  readonly id: string;
  readonly name: string;
  readonly text: string;
}

/** One message of a conversation. Messages alternate; the first and the last are a user's. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly text: string;
  readonly images?: readonly Image[];
  /** Of the assistant: what it has asked for. The next message has the results. */
  readonly calls?: readonly ToolCall[];
  /** Of the user: the results of all calls of the message before. They come before the text. */
  readonly results?: readonly ToolResult[];
}

/** Characters of a prefix from which vendors cache it: about 1,024 tokens. */
export const CACHED_FROM = 4_096;

/** Characters of a message that count for `CACHED_FROM`. */
export function lengthOfMessage({ text, calls = [], results = [] }: Message): number {
  const called = calls.reduce((sum, { arguments: given }) => sum + given.length, text.length);
  return results.reduce((sum, result) => sum + result.text.length, called);
}

/** What a model is asked. */
export interface Prompt {
  /** Instructions; empty for none. */
  readonly system: string;
  readonly messages: readonly Message[];
}

/** How deeply a model may think before it answers. */
export type Reasoning = "none" | Level;

/**
 * Required form of the text. `schema` is JSON Schema; its names, their order and its numbers reach the vendor
 * unchanged.
 */
export type Format = { readonly type: "json" } | { readonly type: "schema"; readonly schema: string };

/** One call of one model, or of several models that act as one. */
export interface ModelCall {
  readonly prompt: Prompt;
  /** Aborts the call, which then throws the signal's reason. */
  readonly signal: Signal;
  /** Value of `performance.now()` at which the completion should be whole. */
  readonly endsAt: number;
  /** Longest silence before the first text, in milliseconds. Absent: the configured one. */
  readonly silenceMs?: number;
  /** Ceiling of the visible text, in tokens. Thinking does not count. Absent: the model's own. */
  readonly maxTokens?: number;
  /** 0 to 2. Absent: `defaultTemperature`. */
  readonly temperature?: number;
  /**
   * Replaces `temperature` where the model does not think, or its vendor takes a temperature beside `reasoning`.
   * Absent: the model's own.
   */
  readonly defaultTemperature?: number;
  readonly stops?: readonly string[];
  /** Whether the text must contain the stop sequence that has ended it. For whole completions only. */
  readonly containsStop?: boolean;
  /** Absent: prose. */
  readonly format?: Format;
  /** Absent: the model cannot ask for any. */
  readonly tools?: Tools;
  /** Absent: the model's own. */
  readonly reasoning?: Reasoning;
  /** Whether to stream; otherwise the vendor is asked for a whole completion. */
  readonly streamed: boolean;
  /** The same for calls whose prompts share a long prefix. Vendors use it to find their cache. */
  readonly cacheKey?: string;
  /** Number of the step that the call is made for; see `Step`. Absent: none. */
  readonly step?: number;
  /** The request that the call is for. Absent: a request of no workspace. */
  readonly requester?: Requester;
  /** Whether the model is called even if its circuit is open, because no other model can answer. */
  readonly isLastResort?: boolean;
  /** Whether other models can answer if this one fails. Then it is not repeated after a long wait. */
  readonly isReplaceable?: boolean;
  /** Whether a draft is the answer if this call fails. Then no model that loads is waited for. */
  readonly hasDraft?: boolean;
  /** Called at the end of each call of a vendor. */
  readonly onUsed?: (used: CallReport) => void;
  /** Called with the drafts of a panel, and the place of the one that is the answer; undefined if none is. */
  readonly onDrafts?: (drafts: readonly DraftReport[], chosen: number | undefined) => void;
}

/** What a member of a panel has answered. */
export interface DraftReport {
  /** Name in the catalogue. */
  readonly model: string;
  /** What answered, as the vendor names it. */
  readonly version?: string | undefined;
  /** Canonical form by which drafts are compared; undefined if the draft has none. */
  readonly canonical: string | undefined;
  readonly text: string;
  readonly calls: readonly WrittenCall[];
  /** Tokens of the prompt that the vendor read from its cache. */
  readonly cachedTokens: number;
  /** See `ModelCall.step`. */
  readonly step?: number | undefined;
}

/** Tokens that the vendor reports, as whole, bounded numbers. */
export interface TokenUsage {
  inputTokens: number;
  /** Part of the input that the vendor read from its cache. */
  cachedTokens: number;
  outputTokens: number;
  /** Part of the output that is thinking. */
  thinkingTokens: number;
}

/** A call of a vendor that has ended, and what it used, thinking included. Each retry is a call. */
export interface CallRecord extends TokenUsage {
  /** Name in the catalogue. */
  model: string;
  /** What answered, as the vendor names it. Absent if it named nothing before the call ended. */
  version?: string;
  tier: Tier;
  /** `left`: the service ended the call, because the caller left, needed no more, or the time was up. */
  outcome: "ok" | "failed" | "timed_out" | "left";
  /** Whether the vendor reported the tokens, or they are estimated because the call ended before the report. */
  source: "reported" | "estimated";
  /** Cost in USD, by the price of what answered; undefined if the catalogue has no price. */
  usd: number | undefined;
}

/** A call of a vendor that has ended, for the request that it was made for. */
export interface CallReport extends CallRecord {
  /** As in the catalogue. */
  vendor: string;
  /** See `ModelCall.step`. */
  step?: number;
  /** `performance.now()` at its start. */
  startedAt: number;
  /** From its start to its end, in milliseconds. */
  durationMs: number;
  /** HTTP status of the vendor's refusal. */
  status?: number;
  /** Code of the vendor or of the network, if it cannot quote a prompt; see `ModelError.safeCode`. */
  code?: string;
}

/** One step towards an answer, reported at its start and at its end. It contains no model, vendor or text. */
export interface Step {
  /** Number within the answer, from 1; the same at the start and at the end. */
  id: number;
  /**
   * `answer`, `draft`, `vote`, `judge`, `analysis`, `write`, `hedge`, `fallback`, `repair`, `reask`, `escalate`, or a
   * service's own.
   */
  kind: string;
  /** `fast`, `strong` or `service`. At the end that of the model that answered. */
  role: string;
  /** Absent when the step begins. `dropped`: its result was no longer needed. */
  outcome?: "ok" | "failed" | "dropped";
  /** The result, or why the step was made, in a sentence for the caller. */
  detail?: string;
  /** Of a vote: share of the weight of all votes that the leading answer got, 0 to 1; also if it did not win. */
  agreement?: number;
}

/** `unknown`: the vendor's reason is missing or not in our tables, so the completion may be incomplete. */
export type EndReason = "stop" | "length" | "content_filter" | "unknown";

/** The end of a completion. It comes once, last, and only after the vendor's terminal frame. */
export interface End {
  readonly type: "end";
  readonly reason: EndReason;
  /** With the reason `length`: the limit was that of the model or its window, which is below that of the call. */
  readonly isOwnLimit?: true;
  /** Undefined if the vendor reported none. */
  readonly usage: TokenUsage | undefined;
  /** Catalogue name of the model that wrote the text; empty if the service made it. */
  readonly model: string;
  /** What answered, as the vendor names it. Absent if it names nothing. */
  readonly version?: string;
}

/** A call as a model wrote it. It has no identifier yet. */
export type WrittenCall = Omit<ToolCall, "id">;

/**
 * A piece of a completion. All text that one socket read brings is one piece. `calls` come once at most, all together,
 * after the text. `progress` says that the vendor sent something else; with `usage`, that it sent a completion which is
 * not used, and is asked again; with `isIdle`, that it sent only comments, which keep the connection open.
 */
export type Piece =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "calls"; readonly calls: readonly WrittenCall[] }
  | { readonly type: "progress"; readonly usage?: TokenUsage; readonly isIdle?: boolean }
  | { readonly type: "step"; readonly step: Step }
  | End;

/** The pieces of a completion. */
export type Pieces = Parts<Piece>;

/** The next piece, or the end. */
export type NextPiece = NextPart<Piece>;

/**
 * A model, or several that act as one: panel, cascade, hedge, failover, retries and tracing wrap models and are models.
 */
export interface Model {
  /** For logs and tests. */
  readonly name: string;
  /**
   * Calls the model. The call starts when the first piece is read, and ends when the iteration is left.
   * @throws ModelError; UpstreamError if several models failed; the reason of `call.signal`
   */
  ask(call: ModelCall): Pieces;
}

/** A whole completion: the fold of its pieces. */
export interface Completion {
  text: string;
  calls: readonly WrittenCall[];
  steps: Step[];
  end: End;
}

/** Reads a completion to its end. @throws what the model throws */
export async function complete(model: Model, call: ModelCall): Promise<Completion> {
  let text = "";
  let calls: readonly WrittenCall[] = [];
  const steps: Step[] = [];
  for await (const piece of model.ask(call)) {
    if (piece.type === "text") text += piece.text;
    else if (piece.type === "calls") calls = piece.calls;
    else if (piece.type === "step") steps.push({ ...piece.step });
    else if (piece.type === "end") return { text, calls, steps, end: piece };
  }
  throw new TypeError(`The model ${model.name} ended without an end.`);
}
