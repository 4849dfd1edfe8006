import type { FromSchema, ResponseSchema } from "./schema.ts";

/** A word of an answer: a known one, or one that a later version of the service adds. A `switch` needs a `default`. */
type Open<Word extends string> = Word | (string & Record<never, never>);

/** Upper limit of the intelligence level; with `auto` (the default) the service chooses by the prompt's difficulty. */
export type Effort = "auto" | "low" | "medium" | "high";

/**
 * The shape of an answer without a JSON Schema. Every shape except `auto` and `text` gives JSON that the prompt
 * describes.
 */
export type OutputShape = "auto" | "text" | "extract" | "summary" | "recommendation" | "tradeoffs" | "decision";

/** A function of yours that an answer may ask for. */
export interface Tool {
  /** 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`. */
  readonly name: string;
  /** What the function does and when to use it. */
  readonly description?: string | undefined;
  /** JSON Schema of the arguments, whose root is an object. Default: a function without arguments. */
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  /** True refuses a schema that the service cannot check as a whole. */
  readonly strict?: boolean | undefined;
}

/** A call of a tool. Run the function, and send the result as a message of the role `tool`. */
export interface ToolCall {
  /** Prefix `call_`. */
  readonly id: string;
  readonly name: string;
  /** Valid against the `parameters` of the tool. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Whether an answer may, must or must not ask for tools, or which one it must call. */
export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** One message of a conversation. */
export interface Message {
  readonly role: "system" | "user" | "assistant" | "tool";
  /** May be left out beside `tool_calls`. Of the role `tool`: the result of the call. */
  readonly content?: string | undefined;
  /** Of the role `assistant`: the calls of an earlier answer. A message of the role `tool` must follow for each. */
  readonly tool_calls?: readonly ToolCall[] | undefined;
  /** Of the role `tool`: the identifier of the call. */
  readonly tool_call_id?: string | undefined;
}

/** A file that is sent with a request. */
export interface Attachment {
  /** File name, up to 255 characters. */
  readonly name?: string | undefined;
  /** For example `text/plain`, `application/pdf` or `image/png`. */
  readonly media_type: string;
  /** The content in base64. */
  readonly data: string;
  /** Index of the message that it belongs to: of the user, or a result of a tool. Default: the user's last one. */
  readonly message?: number | undefined;
}

/** Either a prompt or a conversation. */
type Input =
  | { /** 1 to 200,000 characters. */ readonly prompt: string; readonly messages?: undefined }
  | { /** 1 to 40, oldest first. */ readonly messages: readonly Message[]; readonly prompt?: undefined };

/** The tools of a request; undefined: it has none. */
export type Tools = readonly Tool[] | undefined;

interface Options<Shape extends OutputShape, Offered extends Tools> {
  /** Instructions: persona, tone, format. */
  readonly system?: string | undefined;
  /** Up to 5 files. */
  readonly attachments?: readonly Attachment[] | undefined;
  readonly effort?: Effort | undefined;
  /** 0.0 to 2.0. Default: chosen by the service for each request. */
  readonly temperature?: number | undefined;
  /** Maximum length of the answer in tokens, 1 to 32,000. */
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
  /** Up to 128 functions of yours that the answer may ask for. */
  readonly tools?: Offered | undefined;
  /** Default `auto`. */
  readonly tool_choice?: ToolChoice | undefined;
  /** False: the answer asks for one call at most. */
  readonly parallel_tool_calls?: boolean | undefined;
  /** Your end user, for whom usage is summed up: an identifier of 1 to 128 characters, no name or e-mail address. */
  readonly user?: string | undefined;
  /** Up to 8 labels by which usage is summed up; names of `a-z`, `0-9`, `_`, `.`, `-`, values of 1 to 64 characters. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
}

/** The request of `generate`: the body of `POST /v1/generate`. */
export type GenerateRequest<
  Schema extends ResponseSchema | undefined = ResponseSchema | undefined,
  Shape extends OutputShape = OutputShape,
  Offered extends Tools = Tools,
> = Input &
  Options<Shape, Offered> & {
    readonly response_format?:
      | { readonly type: "json_schema"; readonly schema: Schema }
      | { readonly type: "text" }
      | undefined;
  };

/** The request of `stream`: the body of `POST /v1/generate:stream`, which does not accept a JSON Schema. */
export type StreamRequest<Shape extends OutputShape = OutputShape> = Input &
  Options<Shape, Tools> & { readonly response_format?: { readonly type: "text" } | undefined };

/**
 * The type of `structured`: the type that the JSON Schema describes, or null if the request has tools, because the
 * answer may ask for them instead; without a schema, an object or null if the output shape is JSON; otherwise
 * undefined. Read numbers above 2^53 from `answer`, which is text.
 */
export type Structured<Schema, Shape, Offered = undefined> = Schema extends ResponseSchema
  ? FromSchema<Schema> | (Offered extends readonly [] | undefined ? never : null)
  : Shape extends "auto" | "text"
    ? undefined
    : Record<string, unknown> | null;

/** Tokens and credits that a request used. */
export interface Usage {
  /** Tokens of the request, each counted once. */
  input_tokens: number;
  /** Tokens of the answer and of its tool calls. */
  output_tokens: number;
  /** The part of `input_tokens` that came from a cache. */
  cached_tokens: number;
  /** Credits charged, exact to one millionth; 0 if the request is not charged. */
  credits: number;
}

/** A remark about a request that succeeded. */
export interface Notice {
  /** For example `unknown_field`. */
  code: string;
  message: string;
  /** Path of the field in the request. */
  field?: string;
}

/** What a step did; see the guide on effort. */
export type StepKind =
  | "attachments"
  | "search"
  | "answer"
  | "draft"
  | "vote"
  | "judge"
  | "analysis"
  | "write"
  | "hedge"
  | "fallback"
  | "repair"
  | "reask"
  | "escalate";

/** Who did a step: a model of the fast or the strong tier, or the service itself. */
export type StepRole = "fast" | "strong" | "service";

/** `dropped`: the step was aborted because its result was no longer needed. */
export type StepOutcome = "ok" | "failed" | "dropped";

/** One step of the processing of a request. */
export interface TraceStep {
  /** Counts from 1. The events for the start and the end of a step have the same id. */
  id: number;
  kind: Open<StepKind>;
  role: Open<StepRole>;
  /** Start of the step, in milliseconds after the start of processing. */
  started_ms: number;
  /** In milliseconds; omitted while the step runs. */
  duration_ms?: number;
  /** Omitted while the step runs. */
  outcome?: Open<StepOutcome>;
  /** Result of the step, as text for people. */
  detail?: string;
}

/** How a request was processed. */
export interface IntelligenceTrace {
  /** Never `auto`. */
  intelligence_level: Open<Effort>;
  /** Reasons for this level, as text for people. */
  reasons: string[];
  /** Number of models that contributed to the answer. */
  models: number;
  /** Share of the votes that the answer got, 0 to 1; omitted without a vote. */
  agreement?: number;
  /** How often a disagreement or failure led to a call of a stronger model. */
  escalations: number;
  /** Members of a panel that failed or exceeded their time. */
  dropped_members: number;
  /** Drafts that violated the JSON Schema and were repaired or generated again. */
  repairs: number;
  /** Number of web searches. */
  searches: number;
  /** Tokens of all model calls as counted by the vendors. They are not the charged tokens. */
  internal_input_tokens: number;
  internal_output_tokens: number;
  steps: TraceStep[];
}

/**
 * Why an answer ended. `length`: it reached `max_tokens`, or the service cut it short (notice `cut_short`).
 * `content_filter`: a safety filter of the model ended it (notice `content_filtered`). An answer with either notice is
 * not charged. `tool_calls`: it asks for tools.
 */
export type FinishReason = "stop" | "length" | "content_filter" | "tool_calls";

/** Members that complete answers and the end of a stream share. */
interface End<Json> {
  /** Prefix `gen_`. */
  id: string;
  /** Prefix `req_`; quote it when you report a problem. */
  request_id: string;
  /** The parsed JSON, if the request asked for JSON. */
  structured: Json;
  usage: Usage;
  finish_reason: Open<FinishReason>;
  /** The stop sequence that ended the answer. Omitted if none did, or if a model ended there without saying so. */
  stop_sequence?: string;
  notices: Notice[];
  /** Present if the request set `intelligence_trace`. */
  intelligence_trace?: IntelligenceTrace;
}

/** A complete answer. */
export interface Generation<Json = unknown> extends End<Json> {
  /** The answer as text, also if it is JSON. It may be empty beside `tool_calls`. */
  answer: string;
  /** The calls that the answer asks for; omitted without any. */
  tool_calls?: ToolCall[];
  /** Why `structured` is null. */
  structured_error: string | null;
  /** Time from the arrival of the request to the answer, in milliseconds. */
  latency_ms: number;
}

/** The end of a streamed answer. */
export interface Done<Json = unknown> extends End<Json> {
  /** Why `structured` is null; omitted for text. */
  structured_error?: string | null;
}

/** An event of a stream. Event types that this version does not know are skipped. */
export type StreamEvent<Json = unknown> =
  | { type: "delta" /** The next piece of the text. */; text: string }
  | { type: "trace"; step: TraceStep }
  | ({ type: "tool_call" /** A call that the answer asks for; `index` from 0. */; index: number } & ToolCall)
  | ({ type: "done" } & Done<Json>);

/** How good an answer was: a score, right or wrong, or the right answer. */
export type Outcome =
  | Judgement<{
      /** 0.0 (useless or wrong) to 1.0 (as good as can be). */ readonly score: number;
      readonly correct?: undefined;
    }>
  | Judgement<{ readonly correct: boolean; readonly score?: undefined }>
  | {
      /** The right answer, which is compared and never stored: the score is 1 if the answer is the same, else 0. */
      readonly expected: string;
      readonly score?: undefined;
      readonly correct?: undefined;
    };

/** The right answer beside a judgement only says which drafts of the answer were right. */
type Judgement<Of> = Of & { readonly expected?: string | undefined };

/** A recorded outcome. */
export interface RecordedOutcome {
  /** Prefix `gen_`. */
  generation_id: string;
  /** 0 to 1. */
  score: number;
  /** RFC 3339. When this outcome was first recorded. */
  recorded_at: string;
}

/** How a request ended; `failed` has a `failure_code`. */
export type GenerationStatus = "ok" | "cut_short" | "caller_gone" | "failed";

/** A message of a kept prompt, or a call of a tool. */
export interface RunTextMessage {
  role: Open<Message["role"]>;
  /** Of a call of a tool: its arguments, as JSON text. */
  text: string;
  /** Name of the tool of a call or a result; otherwise empty. */
  tool: string;
}

/** The text of a request. Callers and models wrote it, so do not trust it. */
export interface RunText {
  /** Instructions first. */
  messages: RunTextMessage[];
  /** `size` is in bytes. The content is not kept. */
  files: { name: string; media_type: string; size: number }[];
  /** `step` is the `id` of the step. Empty if one model answered. */
  drafts: { step: number; text: string }[];
  /** As far as you received it. */
  answer: string;
  /** The calls of tools that the answer asks for. */
  calls: RunTextMessage[];
  /** Whether text was left out, because there was too much. */
  is_cut: boolean;
  /** RFC 3339. The text is deleted then at the latest. */
  kept_until: string;
}

/** How a request was answered. Only `text` has what was said. */
export interface GenerationRun {
  /** Prefix `gen_`. */
  id: string;
  /** Prefix `req_`. */
  request_id: string;
  /** RFC 3339. Time of admission. */
  created_at: string;
  status: Open<GenerationStatus>;
  /** For example `upstream_failed`. */
  failure_code?: string;
  streamed: boolean;
  /** As requested. */
  effort: Open<Effort>;
  /** Time from the arrival of the request to its end, in milliseconds. */
  latency_ms: number;
  usage: Usage;
  /** Omitted if there was no answer. */
  finish_reason?: Open<FinishReason>;
  /** Kept as long as `intelligence_trace`. Messages that depend on the request are not kept. */
  notices: Notice[];
  /** Omitted if how the answer was made is not kept, or not any more. */
  intelligence_trace?: IntelligenceTrace;
  user?: string;
  tags: Record<string, string>;
  /** Score of the recorded outcome, 0 to 1; for seven days. */
  score?: number;
  /** What was said. Only where the workspace keeps it, and only for the key that made the request. */
  text?: RunText;
}

/** A limit and its use. `limit` and `remaining` are null if there is no limit. */
export interface Quota {
  limit: number | null;
  used: number;
  remaining: number | null;
}

/** The limits of one calendar period in UTC. */
export interface QuotaWindow {
  /** RFC 3339. */
  resets_at: string;
  requests: Quota;
  input_tokens: Quota;
  output_tokens: Quota;
}

/** Calendar period of a spend limit, UTC. */
export type SpendPeriod = "day" | "week" | "month";

/** What a cap limits; all but `concurrent_requests` in a period. */
export type CapFigure = "credits" | "requests" | "input_tokens" | "output_tokens" | "concurrent_requests";

/** Calendar period of a cap, UTC; `total` is all time. */
export type CapPeriod = "minute" | "day" | "week" | "month" | "total";

/** A cap of a key or a user, and its use. */
export interface CapQuota {
  /** `key:ID` or `user:ID`. */
  subject: string;
  figure: Open<CapFigure>;
  /** Absent for concurrent requests. */
  period?: Open<CapPeriod>;
  limit: number;
  /** Credits that running requests hold count as used. */
  used: number;
  remaining: number;
  /** What happens when it is used up: requests are refused, or answered with the effort `low`. */
  action: Open<"refuse" | "low">;
  /** RFC 3339. Absent for concurrent requests and for `total`. */
  resets_at?: string;
}

/** The limits of the key's workspace and their use. */
export interface Quotas {
  workspace: string;
  tier: string;
  as_of: string;
  windows: { minute: QuotaWindow; day: QuotaWindow; month: QuotaWindow };
  concurrent_requests: Quota;
  /** In credits; null if the service does not bill. */
  credit: { balance: number; held: number; available: number } | null;
  spend_limits: { period: Open<SpendPeriod>; limit: number; used: number; remaining: number; resets_at: string }[];
  /** Caps of the key, and of the user that the call names. */
  caps: CapQuota[];
}

export type MetricsInterval = "minute" | "hour" | "day" | "month";

/** The request of `metrics`. Default: the last 30 days by day. */
export interface MetricsRequest {
  /** Inclusive. */
  readonly from?: Date | string | undefined;
  /** Exclusive. */
  readonly to?: Date | string | undefined;
  readonly interval?: MetricsInterval | undefined;
  /** With `tag:NAME`, one point for each value of the tag `NAME`. */
  readonly group_by?: "none" | "key" | "user" | `tag:${string}` | undefined;
}

/** Sums over an interval or a period. */
export interface MetricsTotals {
  requests: number;
  failed_requests: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  credits: number;
}

/** Usage of the key's workspace over a period. */
export interface Metrics {
  from: string;
  to: string;
  interval: Open<MetricsInterval>;
  totals: MetricsTotals;
  /** Oldest first, without empty intervals. `key_id`, `user` or the tag's value says which group a point is of. */
  series: ({ start: string; key_id?: string; user?: string; tag?: string } & MetricsTotals)[];
}
