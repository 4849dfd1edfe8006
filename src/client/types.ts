import type { FromSchema, ResponseSchema } from "./schema.ts";

/** How much work the service spends on a request; with `auto` (the default) it decides by the difficulty of the prompt. */
export type Effort = "auto" | "low" | "medium" | "high";

/** The shape of an answer without a JSON Schema; every shape but `auto` and `text` gives JSON that the prompt defines. */
export type OutputShape = "auto" | "text" | "extract" | "summary" | "recommendation" | "tradeoffs" | "decision";

/** One turn of a conversation. */
export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** A file that belongs to a request. */
export interface Attachment {
  /** File name, up to 255 characters. */
  readonly name?: string | undefined;
  /** Such as `text/plain`, `application/pdf` or `image/png`. */
  readonly media_type: string;
  /** The bytes in base64. */
  readonly data: string;
}

/** Either a prompt or a conversation. */
type Input =
  | { /** 1 to 200,000 characters. */ readonly prompt: string; readonly messages?: undefined }
  | { /** 1 to 40, oldest first. */ readonly messages: readonly Message[]; readonly prompt?: undefined };

interface Options<Shape extends OutputShape> {
  /** Your own instructions: persona, tone, format. Up to 200,000 characters. */
  readonly system?: string | undefined;
  /** Up to 5 files. */
  readonly attachments?: readonly Attachment[] | undefined;
  readonly effort?: Effort | undefined;
  /** 0.0 to 2.0. Left out: the service chooses per question. */
  readonly temperature?: number | undefined;
  /** Ceiling on the length of the answer in tokens, 1 to 32,000. */
  readonly max_tokens?: number | undefined;
  /** Up to 4 strings; the answer ends before the first of them. */
  readonly stop_sequences?: readonly string[] | undefined;
  readonly output_shape?: Shape | undefined;
  /** True searches the web first. */
  readonly web_search?: boolean | undefined;
  /** True adds an Intelligence Trace to the answer. */
  readonly intelligence_trace?: boolean | undefined;
  /** True continues the last message, which must then have the role `assistant`. */
  readonly continue?: boolean | undefined;
}

/** What `generate` takes: the body of `POST /v1/generate`. */
export type GenerateRequest<
  Schema extends ResponseSchema | undefined = ResponseSchema | undefined,
  Shape extends OutputShape = OutputShape,
> = Input &
  Options<Shape> & {
    readonly response_format?:
      | { readonly type: "json_schema"; readonly schema: Schema }
      | { readonly type: "text" }
      | undefined;
  };

/** What `stream` takes: the body of `POST /v1/generate:stream`, where a JSON Schema is not possible. */
export type StreamRequest<Shape extends OutputShape = OutputShape> = Input &
  Options<Shape> & { readonly response_format?: { readonly type: "text" } | undefined };

/**
 * The type of `structured`: what the JSON Schema says; else, where the shape asks for JSON, an object or null; else nothing. Read numbers
 * beyond 2^53 from `answer`, which is text.
 */
export type Structured<Schema, Shape> = Schema extends ResponseSchema
  ? FromSchema<Schema>
  : Shape extends "auto" | "text"
    ? undefined
    : Record<string, unknown> | null;

/** What a request used up. */
export interface Usage {
  /** Tokens of everything that was sent, counted once. */
  input_tokens: number;
  /** Tokens of the answer. */
  output_tokens: number;
  /** The part of `input_tokens` that came from a cache. */
  cached_tokens: number;
  /** Credits charged, exact to one millionth; 0 when the request is not charged. */
  credits: number;
}

/** Something you should know about a request that succeeded. */
export interface Notice {
  /** Such as `unknown_field`. */
  code: string;
  message: string;
  /** Path of the request's field. */
  field?: string;
}

/** One step of the way to an answer. */
export interface TraceStep {
  /** From 1; the end of a step has the number of its beginning. */
  id: number;
  kind: string;
  role: string;
  /** Milliseconds since the work on the request began. */
  started_ms: number;
  /** Milliseconds; left out while the step runs. */
  duration_ms?: number;
  /** `ok`, `failed` or `dropped`; left out while the step runs. */
  outcome?: string;
  /** What came of it, in words for people. */
  detail?: string;
}

/** How a request was handled. */
export interface IntelligenceTrace {
  intelligence_level: Effort;
  /** Why this level, in words for people. */
  reasons: string[];
  /** Models that had a part in the answer. */
  models: number;
  /** Share of the votes that the answer got, 0 to 1; left out when nobody voted. */
  agreement?: number;
  /** Times that disagreement or a failure took the work on to a stronger model. */
  escalations: number;
  /** Members of a panel that failed, or were too late. */
  dropped_members: number;
  /** Answers that did not satisfy the JSON Schema and were mended, or asked for again. */
  repairs: number;
  /** Searches of the web. */
  searches: number;
  /** Tokens of all calls of models, as the vendors count; they are not what is charged. */
  internal_input_tokens: number;
  internal_output_tokens: number;
  steps: TraceStep[];
}

/** What the end of an answer tells, whole or streamed. */
interface End<Json> {
  /** Prefix `gen_`. */
  id: string;
  /** Prefix `req_`; name it when you report a problem. */
  request_id: string;
  /** The answer as JSON, where JSON was asked for. */
  structured: Json;
  usage: Usage;
  /** `length`: `max_tokens` was reached, or the service cut the answer short (then uncharged, with a notice `cut_short`). */
  finish_reason: "stop" | "length";
  notices: Notice[];
  /** Only when asked for. */
  intelligence_trace?: IntelligenceTrace;
}

/** A whole answer. */
export interface Generation<Json = unknown> extends End<Json> {
  /** The answer as text, always. */
  answer: string;
  /** Why `structured` is null. */
  structured_error: string | null;
  /** From the arrival of the request to the answer. */
  latency_ms: number;
}

/** The end of a streamed answer. */
export interface Done<Json = unknown> extends End<Json> {
  /** Why `structured` is null; left out for text. */
  structured_error?: string | null;
}

/** What a stream yields. Event types that this version does not know are skipped. */
export type StreamEvent<Json = unknown> =
  | { type: "delta" /** Append the pieces in order. */; text: string }
  | { type: "trace"; step: TraceStep }
  | ({ type: "done" } & Done<Json>);

/** A limit and its use; null where there is no limit. */
export interface Quota {
  limit: number | null;
  used: number;
  remaining: number | null;
}

/** The limits of one calendar window, UTC. */
export interface QuotaWindow {
  /** RFC 3339. */
  resets_at: string;
  requests: Quota;
  input_tokens: Quota;
  output_tokens: Quota;
}

/** Limits and use of the key's workspace. */
export interface Quotas {
  workspace: string;
  tier: string;
  as_of: string;
  windows: { minute: QuotaWindow; day: QuotaWindow; month: QuotaWindow };
  concurrent_requests: Quota;
  /** In credits; null where the service does not bill. */
  credit: { balance: number; held: number; available: number } | null;
  spend_limits: { period: string; limit: number; used: number; remaining: number; resets_at: string }[];
}

export type MetricsInterval = "minute" | "hour" | "day" | "month";

/** What `metrics` takes; the default is the last 30 days by day. */
export interface MetricsRequest {
  /** Inclusive. */
  readonly from?: Date | string | undefined;
  /** Exclusive. */
  readonly to?: Date | string | undefined;
  readonly interval?: MetricsInterval | undefined;
  readonly group_by?: "none" | "key" | undefined;
}

/** Sums over a time. */
export interface MetricsTotals {
  requests: number;
  failed_requests: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  credits: number;
}

/** Use of the key's workspace over a period. */
export interface Metrics {
  from: string;
  to: string;
  interval: MetricsInterval;
  totals: MetricsTotals;
  /** Oldest first, without empty intervals; `key_id` only when grouped by key. */
  series: ({ start: string; key_id?: string } & MetricsTotals)[];
}
