/** Every code that the service sends. */
export const SERVICE_CODES = [
  "invalid_json",
  "malformed_request",
  "unauthenticated",
  "insufficient_credit",
  "missing_scope",
  "not_found",
  "method_not_allowed",
  "idempotency_key_in_use",
  "request_too_large",
  "unsupported_media_type",
  "invalid_request",
  "content_refused",
  "request_too_long",
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

/** Why a request failed: a code of the service, or one that this client adds. */
export type FailureCode =
  | (typeof SERVICE_CODES)[number]
  /** A rate limit; the service sends no code for it. */
  | "rate_limited"
  /** There was no response, or the connection broke before its end. */
  | "connection_failed"
  /** Your `timeoutMs` passed. */
  | "timeout"
  /** The response is not from the service, for example from a proxy, or has a code that this version does not know. */
  | "unexpected_response";

interface FailureInit {
  code: FailureCode;
  message: string;
  status?: number | undefined;
  requestId?: string | undefined;
  field?: string | undefined;
  limit?: string | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Every failure that this client throws. When you abort a request, the reason of your signal is thrown instead. */
export class ChorusError extends Error {
  readonly code: FailureCode;
  /** HTTP status; undefined if there was no response, or if the failure came after a stream had begun. */
  readonly status: number | undefined;
  /** Prefix `req_`; quote it when you report a problem. */
  readonly requestId: string | undefined;
  /** Path of the invalid field, such as `messages[3].role`. */
  readonly field: string | undefined;
  /** Name of the exceeded limit, such as `requests_per_minute`. */
  readonly limit: string | undefined;
  /** Milliseconds after which the same request may succeed. */
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

/** A failure for a response that this version of the service never sends. */
export function unexpected(message: string, status?: number, cause?: unknown): ChorusError {
  return new ChorusError({
    code: "unexpected_response",
    message: `${message} Check that baseUrl is the address of the service.`,
    status,
    cause,
  });
}

/** Converts a response with a status other than 2xx. */
export async function failureOf(response: Response): Promise<ChorusError> {
  const text = await response.text();
  const failure = bodyFailure(text, response.status);
  if (failure) return failure;
  return new ChorusError({
    code: "unexpected_response",
    message: `HTTP status ${response.status} without an error body. Check that baseUrl is the address of the service.`,
    status: response.status,
    requestId: response.headers.get("x-request-id") ?? undefined,
    retryAfterMs: retryAfterOf(response.headers),
  });
}

/** The wait that a gateway states: in seconds, or as a date (RFC 9110, section 10.2.3). */
function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get("retry-after") ?? "";
  const ms = value === "" || Number.isNaN(Number(value)) ? Date.parse(value) - Date.now() : Number(value) * 1_000;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** Parses the body of a failure; returns undefined for any other body. */
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
