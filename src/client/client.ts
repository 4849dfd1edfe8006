import { unexpected } from "./failure.ts";
import { errorOf, type HttpRequest, idleTimeout, type Settings, send } from "./http.ts";
import { backOff, isRetryable } from "./retry.ts";
import type { ResponseSchema } from "./schema.ts";
import { type AnswerStream, answerStream } from "./stream.ts";
import type {
  GenerateRequest,
  Generation,
  GenerationRun,
  Metrics,
  MetricsRequest,
  Outcome,
  OutputShape,
  Quotas,
  RecordedOutcome,
  StreamRequest,
  Structured,
  Tools,
} from "./types.ts";

export { ChorusError, type FailureCode } from "./failure.ts";
export type { FromSchema, ResponseSchema } from "./schema.ts";
export type { AnswerStream } from "./stream.ts";
export type {
  Attachment,
  CapFigure,
  CapPeriod,
  CapQuota,
  Done,
  Effort,
  FinishReason,
  GenerateRequest,
  Generation,
  GenerationRun,
  GenerationStatus,
  IntelligenceTrace,
  Message,
  Metrics,
  MetricsInterval,
  MetricsRequest,
  MetricsTotals,
  Notice,
  Outcome,
  OutputShape,
  Quota,
  Quotas,
  QuotaWindow,
  RecordedOutcome,
  RunText,
  RunTextMessage,
  SpendPeriod,
  StepKind,
  StepOutcome,
  StepRole,
  StreamEvent,
  StreamRequest,
  Structured,
  Tool,
  ToolCall,
  ToolChoice,
  Tools,
  TraceStep,
  Usage,
} from "./types.ts";

export interface ChorusOptions {
  /** Address of the service, such as `https://chorus.example.com`, without `/v1`. */
  readonly baseUrl: string;
  /** Secret of an API key. Keep it on a server; never put it into browser or mobile code. */
  readonly apiKey: string;
  /** Default: `globalThis.fetch`. */
  readonly fetch?: typeof fetch;
  /** Most retries of a request that failed and may succeed later, 0 or more. Default 3. */
  readonly retries?: number;
  /**
   * Timeout for a complete answer, and for the time between two pieces of a stream, in milliseconds. It applies to each
   * attempt. Default 240,000.
   */
  readonly timeoutMs?: number;
}

export interface CallOptions {
  /**
   * Ends the request; its reason is thrown. An aborted `generate` is not charged, an aborted stream is charged for what
   * was sent so far.
   */
  readonly signal?: AbortSignal | undefined;
}

export interface QuotasOptions extends CallOptions {
  /** An end user whose caps are listed, too. */
  readonly user?: string | undefined;
}

export interface GenerateOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. Within 24 hours, the same key with the same request gives the same answer and is
   * charged once. Default: a new key for each call of `generate`, which makes its retries safe.
   */
  readonly idempotencyKey?: string | undefined;
}

/** Requests and answers use the field names of the REST API, so the API reference applies to them. */
export interface Chorus {
  /**
   * Returns a complete answer. If the JSON Schema is written inline or `as const`, `structured` has the type that it
   * describes; beside tools also null, for an answer that asks for them.
   * @throws ChorusError
   */
  generate<
    const Schema extends ResponseSchema | undefined = undefined,
    const Shape extends OutputShape = "auto",
    const Offered extends Tools = undefined,
  >(
    request: GenerateRequest<Schema, Shape, Offered>,
    options?: GenerateOptions,
  ): Promise<Generation<Structured<Schema, Shape, Offered>>>;
  /** Streams an answer. The request is sent when you read the stream; its iteration throws ChorusError. */
  stream<const Shape extends OutputShape = "auto">(
    request: StreamRequest<Shape>,
    options?: CallOptions,
  ): AnswerStream<Structured<undefined, Shape>>;
  /**
   * Records how good an answer was, for seven days after it. The last outcome counts, and the same one again changes
   * nothing, so retries are safe.
   * @param id of the answer, such as `generation.id` or `done.id`
   * @throws ChorusError; `not_found` for an answer that the workspace does not have, or that is older
   */
  recordOutcome(id: string, outcome: Outcome, options?: CallOptions): Promise<RecordedOutcome>;
  /**
   * Shows how a request of the workspace was answered: its end, tokens and credits, and while that is kept, the
   * Intelligence Trace and the text. Needs a key with the scope `metrics`.
   * @param id of the answer, such as `generation.id` or `done.id`
   * @throws ChorusError; `not_found` for a request that the workspace does not have
   */
  getGeneration(id: string, options?: CallOptions): Promise<GenerationRun>;
  /** Limits of the key's workspace and their use. Needs a key with the scope `metrics`. @throws ChorusError */
  quotas(options?: QuotasOptions): Promise<Quotas>;
  /** Usage over a period. Needs a key with the scope `metrics`. @throws ChorusError */
  metrics(request?: MetricsRequest, options?: CallOptions): Promise<Metrics>;
}

/** The service's longest default deadline, 3 minutes, plus a minute for network and proxies. */
const TIMEOUT_MS = 240_000;

/** Creates a client of the REST API. @throws TypeError naming the invalid option */
export function createChorus(options: ChorusOptions): Chorus {
  const settings = check(options);
  return {
    async generate(request, { signal, idempotencyKey = crypto.randomUUID() } = {}) {
      checkHeader("idempotencyKey", idempotencyKey);
      return sendForJson(settings, { path: "/v1/generate", body: JSON.stringify(request), idempotencyKey }, signal);
    },
    stream: (request, { signal } = {}) =>
      answerStream(settings, { path: "/v1/generate:stream", body: JSON.stringify(request) }, signal),
    async recordOutcome(id, outcome, { signal } = {}) {
      const path = `/v1/generations/${encodeURIComponent(id)}/outcome`;
      return sendForJson(settings, { path, body: JSON.stringify(outcome) }, signal);
    },
    // Async, so that an argument that cannot be sent, such as an invalid date, rejects as any failure does.
    async getGeneration(id, { signal } = {}) {
      return sendForJson(settings, { path: `/v1/generations/${encodeURIComponent(id)}` }, signal);
    },
    async quotas({ signal, user } = {}) {
      return sendForJson(settings, { path: `/v1/quotas${query({ user })}` }, signal);
    },
    async metrics(request = {}, { signal } = {}) {
      return sendForJson(settings, { path: `/v1/metrics${query(request)}` }, signal);
    },
  };
}

/** Sends a request with retries and parses the JSON response. The request must be idempotent. */
async function sendForJson<T>(settings: Settings, request: HttpRequest, signal: AbortSignal | undefined): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const idle = idleTimeout(signal, settings.timeoutMs);
    try {
      const response = await send(settings, request, idle.signal);
      return parse<T>(await response.text(), response);
    } catch (cause) {
      const error = errorOf(cause, idle.signal);
      const mayRetry = attempt < settings.retries && isRetryable(error);
      if (!mayRetry || !(await backOff(error, attempt, signal))) throw error;
    } finally {
      idle.end();
    }
  }
}

/** @throws SyntaxError for JSON that was cut on its way, by a proxy that does not pass its length on; ChorusError */
function parse<T>(text: string, { headers, status }: Response): T {
  try {
    return JSON.parse(text);
  } catch (cause) {
    if (headers.get("content-type")?.startsWith("application/json")) throw cause;
    throw unexpected("The response is not valid JSON.", status, cause);
  }
}

function query(request: MetricsRequest | { user: string | undefined }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request)) {
    if (value !== undefined) query.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return query.size === 0 ? "" : `?${query}`;
}

function check({
  baseUrl,
  apiKey,
  fetch = globalThis.fetch,
  retries = 3,
  timeoutMs = TIMEOUT_MS,
}: ChorusOptions): Settings {
  if (!/^https?:\/\//i.test(baseUrl))
    throw new TypeError("baseUrl must be an http or https address, such as https://chorus.example.com.");
  const base = baseUrl.replace(/\/+$/, "");
  if (base.endsWith("/v1"))
    throw new TypeError(`baseUrl must be the address of the service without /v1: ${base.slice(0, -"/v1".length)}.`);
  if (!apiKey) throw new TypeError("apiKey is empty. Set it to the secret of an API key.");
  checkHeader("apiKey", apiKey);
  if (!(Number.isInteger(retries) && retries >= 0)) throw new TypeError("retries must be a whole number, 0 or more.");
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) throw new TypeError("timeoutMs must be from 1 to 2147483647.");
  return { baseUrl: base, apiKey, fetch, retries, timeoutMs };
}

/** Checked here because the error that fetch throws contains the value, which may be a secret. */
function checkHeader(name: string, value: string): void {
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new TypeError(`${name} must be visible ASCII characters without spaces or line breaks.`);
  }
}
