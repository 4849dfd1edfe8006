import { unexpected } from "./failure.ts";
import { type Call, reasonOf, type Settings, send, watch } from "./http.ts";
import { backOff, isPassing } from "./retry.ts";
import type { ResponseSchema } from "./schema.ts";
import { type AnswerStream, answerStream } from "./stream.ts";
import type {
  GenerateRequest,
  Generation,
  Metrics,
  MetricsRequest,
  OutputShape,
  Quotas,
  StreamRequest,
  Structured,
} from "./types.ts";

export { ChorusError, type FailureCode } from "./failure.ts";
export type { FromSchema, ResponseSchema } from "./schema.ts";
export type { AnswerStream } from "./stream.ts";
export type {
  Attachment,
  Done,
  Effort,
  GenerateRequest,
  Generation,
  IntelligenceTrace,
  Message,
  Metrics,
  MetricsInterval,
  MetricsRequest,
  MetricsTotals,
  Notice,
  OutputShape,
  Quota,
  Quotas,
  QuotaWindow,
  StreamEvent,
  StreamRequest,
  TraceStep,
  Usage,
} from "./types.ts";

export interface ChorusOptions {
  /** Address of the service, such as `https://chorus.example.com`, without `/v1`. */
  readonly baseUrl: string;
  /** Secret of an API key. Keep it on a server; never put it into browser or mobile code. */
  readonly apiKey: string;
  /** Default: the platform's own. */
  readonly fetch?: typeof fetch;
  /** How often a call is sent again that may pass later, 0 or more. Default 3. */
  readonly retries?: number;
  /** Longest wait for a whole answer, and longest silence of a stream, in milliseconds. Each retry has as long. Default 240,000. */
  readonly timeoutMs?: number;
}

export interface CallOptions {
  /** Ends the call; its reason is what is thrown. A `generate` that is ended costs nothing, a stream what was sent so far. */
  readonly signal?: AbortSignal | undefined;
}

export interface GenerateOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. Within 24 hours the same key with the same request gives the same answer and is charged once.
   * Default: a new one for each call, which makes the retries of that call safe.
   */
  readonly idempotencyKey?: string | undefined;
}

/** Bodies and answers have the names of the wire, so that the API reference and every example hold here as well. */
export interface Chorus {
  /**
   * Gives one whole answer. With a JSON Schema that is written in place, or `as const`, `structured` has the type that it describes.
   * @throws ChorusError
   */
  generate<const Schema extends ResponseSchema | undefined = undefined, const Shape extends OutputShape = "auto">(
    request: GenerateRequest<Schema, Shape>,
    options?: GenerateOptions,
  ): Promise<Generation<Structured<Schema, Shape>>>;
  /** Gives an answer piece by piece. Nothing is sent before the stream is read, whose iteration throws ChorusError. */
  stream<const Shape extends OutputShape = "auto">(
    request: StreamRequest<Shape>,
    options?: CallOptions,
  ): AnswerStream<Structured<undefined, Shape>>;
  /** Limits and use of the key's workspace; needs a key with the scope `metrics`. @throws ChorusError */
  quotas(options?: CallOptions): Promise<Quotas>;
  /** Token use over a period; needs a key with the scope `metrics`. @throws ChorusError */
  metrics(request?: MetricsRequest, options?: CallOptions): Promise<Metrics>;
}

/** 3 minutes for the longest effort, as the service has it, and some more for what lies between. */
const TIMEOUT_MS = 240_000;

/**
 * Makes a client of the service's public address.
 * @throws TypeError naming the option that is not acceptable
 */
export function createChorus(options: ChorusOptions): Chorus {
  const settings = check(options);
  return {
    async generate(request, { signal, idempotencyKey = crypto.randomUUID() } = {}) {
      checkHeader("idempotencyKey", idempotencyKey);
      return whole(settings, { path: "/v1/generate", body: JSON.stringify(request), idempotencyKey }, signal);
    },
    stream: (request, { signal } = {}) =>
      answerStream(settings, { path: "/v1/generate:stream", body: JSON.stringify(request) }, signal),
    quotas: ({ signal } = {}) => whole(settings, { path: "/v1/quotas" }, signal),
    metrics: (request = {}, { signal } = {}) => whole(settings, { path: `/v1/metrics${query(request)}` }, signal),
  };
}

/** Sends a call that may be sent again, since it has an idempotency key or no effect, and reads its JSON. */
async function whole<T>(settings: Settings, call: Call, signal: AbortSignal | undefined): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const watched = watch(signal, settings.timeoutMs);
    try {
      const response = await send(settings, call, watched.signal);
      return parse<T>(await response.text(), response.status);
    } catch (error) {
      const reason = reasonOf(error, watched.signal);
      const mayRetry = attempt < settings.retries && isPassing(reason);
      if (!mayRetry || !(await backOff(reason, attempt, signal))) throw reason;
    } finally {
      watched.end();
    }
  }
}

function parse<T>(text: string, status: number): T {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unexpected("The response is no JSON.", status, cause);
  }
}

function query(request: MetricsRequest): string {
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
  checkHeader("apiKey", apiKey);
  if (!(Number.isInteger(retries) && retries >= 0)) throw new TypeError("retries must be a whole number, 0 or more.");
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) throw new TypeError("timeoutMs must be from 1 to 2147483647.");
  return { baseUrl: baseUrl.replace(/\/+$/, ""), apiKey, fetch, retries, timeoutMs };
}

/** The platform would name the value in its own error. */
function checkHeader(name: string, value: string): void {
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new TypeError(`${name} must be visible ASCII characters, without a space or a line end.`);
  }
}
