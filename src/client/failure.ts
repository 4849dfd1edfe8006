/** Every code that the service itself sends. */
export const SERVICE_CODES = [
  "invalid_json",
  "unauthenticated",
  "insufficient_credit",
  "missing_scope",
  "not_found",
  "method_not_allowed",
  "idempotency_key_in_use",
  "request_too_large",
  "unsupported_media_type",
  "invalid_request",
  "idempotency_key_reused",
  "invalid_response_schema",
  "structured_output_streaming_not_supported",
  "spend_limit_reached",
  "structured_output_failed",
  "upstream_failed",
  "overloaded",
  "timed_out",
  "internal",
] as const;

/** Why a call failed: a code of the service, or one of those that this client adds. */
export type FailureCode =
  | (typeof SERVICE_CODES)[number]
  /** A rate limit, which has no code on the wire. */
  | "rate_limited"
  /** No response came, or it broke off. */
  | "connection_failed"
  /** Your own `timeoutMs` passed. */
  | "timeout"
  /** Something between you and the service answered, or the service has a failure that this version does not know. */
  | "unexpected_response";

/** What is known of a failure. */
export interface FailureInit {
  code: FailureCode;
  message: string;
  status?: number | undefined;
  requestId?: string | undefined;
  field?: string | undefined;
  limit?: string | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Every failure that this client throws, but for an abort of yours, which throws the reason of your signal. */
export class ChorusError extends Error {
  readonly code: FailureCode;
  /** HTTP status; undefined where there was none of the failure's own: no response, or a stream that had begun. */
  readonly status: number | undefined;
  /** Prefix `req_`; name it when you report a problem. */
  readonly requestId: string | undefined;
  /** Path of the field at fault, such as `messages[3].role`. */
  readonly field: string | undefined;
  /** Name of the limit that refused, such as `requests_per_minute`. */
  readonly limit: string | undefined;
  /** Milliseconds after which the same request may pass. */
  readonly retryAfterMs: number | undefined;

  constructor(init: FailureInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.name = "ChorusError";
    this.code = init.code;
    this.status = init.status;
    this.requestId = init.requestId;
    this.field = init.field;
    this.limit = init.limit;
    this.retryAfterMs = init.retryAfterMs;
  }
}

/** The flat body of a failure on the wire. */
interface FailureBody {
  code?: string;
  message?: string;
  request_id?: string;
  field?: string;
  limit?: string;
  retry_after_ms?: number;
}

/** What no service of this version answers. */
export function unexpected(message: string, status?: number, cause?: unknown): ChorusError {
  return new ChorusError({
    code: "unexpected_response",
    message: `${message} Does baseUrl lead to the service?`,
    status,
    cause,
  });
}

/** Reads a response that is no success. */
export async function failureOf(response: Response): Promise<ChorusError> {
  const text = await response.text();
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const known = bodyFailure(text, response.status);
  if (known) return known;
  return new ChorusError({
    code: "unexpected_response",
    message: `HTTP status ${response.status} without a failure of the service. Does baseUrl lead to it?`,
    status: response.status,
    requestId: response.headers.get("x-request-id") ?? undefined,
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1_000 : undefined,
  });
}

/** Reads the body of a failure; undefined when it is none. */
export function bodyFailure(text: string, status?: number): ChorusError | undefined {
  const body = parse(text);
  if (typeof body?.message !== "string" || typeof body.request_id !== "string") return undefined;
  const { code, message } = body;
  return new ChorusError({
    code: code === undefined && status === 429 ? "rate_limited" : isServiceCode(code) ? code : "unexpected_response",
    message,
    status,
    requestId: body.request_id,
    field: body.field,
    limit: body.limit,
    retryAfterMs: body.retry_after_ms,
  });
}

function isServiceCode(code: string | undefined): code is FailureCode {
  return SERVICE_CODES.some((known) => known === code);
}

function parse(text: string): FailureBody | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
