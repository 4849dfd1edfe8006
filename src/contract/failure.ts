import { Code } from "@connectrpc/connect";

interface FailureRow {
  /** HTTP status over REST. */
  readonly http: number;
  /** The stable `code` in the response body; absent for a rate limit. */
  readonly code?: string;
  /** The code over Connect, gRPC and gRPC-Web. */
  readonly connect: Code;
  /** Message for the caller when the code that throws gives none. */
  readonly message: string;
  /** Milliseconds after which the request may succeed, when the code that throws knows no better. */
  readonly retryAfterMs?: number;
}

/**
 * All failures that a caller can see, with HTTP status, code and Connect code. No failure is charged.
 * `docs/failures.md` has the same table for callers; a test checks that both agree.
 */
export const FAILURES = {
  invalid_json: {
    http: 400,
    code: "invalid_json",
    connect: Code.InvalidArgument,
    message: "The body must be one JSON object in UTF-8.",
  },
  malformed_request: {
    http: 400,
    code: "malformed_request",
    connect: Code.InvalidArgument,
    message: "This is not a valid HTTP/1.1 request.",
  },
  request_incomplete: {
    http: 408,
    code: "malformed_request",
    connect: Code.DeadlineExceeded,
    message: "The request did not arrive in time. Send it again, faster or in smaller parts.",
  },
  target_too_long: {
    http: 414,
    code: "malformed_request",
    connect: Code.InvalidArgument,
    message: "The request target is too long. Send a shorter path and query.",
  },
  headers_too_large: {
    http: 431,
    code: "malformed_request",
    connect: Code.InvalidArgument,
    message: "The request line and headers are too large. Send fewer or shorter headers.",
  },
  unauthenticated: {
    http: 401,
    code: "unauthenticated",
    connect: Code.Unauthenticated,
    message: "The request needs a valid API key in the header X-API-Key, or in Authorization as a bearer token.",
  },
  insufficient_credit: {
    http: 402,
    code: "insufficient_credit",
    connect: Code.FailedPrecondition,
    message: "The credit balance is too low for this request. Add credit, then send it again.",
  },
  missing_scope: {
    http: 403,
    code: "missing_scope",
    connect: Code.PermissionDenied,
    message: "The API key lacks the scope that this call needs.",
  },
  foreign_origin: {
    http: 403,
    code: "foreign_origin",
    connect: Code.PermissionDenied,
    message:
      "The request does not come from a page of this address. " +
      "If a proxy changes the Host header, set CHORUS_TRUSTED_PROXIES.",
  },
  not_found: {
    http: 404,
    code: "not_found",
    connect: Code.Unimplemented,
    message: "This path does not exist.",
  },
  unknown_entity: {
    http: 404,
    code: "not_found",
    connect: Code.NotFound,
    message: "The named resource does not exist.",
  },
  method_not_allowed: {
    http: 405,
    code: "method_not_allowed",
    connect: Code.Unimplemented,
    message: "This path does not support the method. The header Allow names the one that it supports.",
  },
  idempotency_key_in_use: {
    http: 409,
    code: "idempotency_key_in_use",
    connect: Code.Aborted,
    message: "A request with this idempotency key is still running. Wait, then send it again to get its answer.",
  },
  request_too_large: {
    http: 413,
    code: "request_too_large",
    connect: Code.OutOfRange,
    message: "The body is larger than 64 MB (67,108,864 bytes). Send a smaller one.",
  },
  unsupported_media_type: {
    http: 415,
    code: "unsupported_media_type",
    connect: Code.InvalidArgument,
    message: "The body must be sent as Content-Type: application/json in UTF-8.",
  },
  unsupported_compression: {
    http: 415,
    code: "unsupported_media_type",
    connect: Code.Unimplemented,
    message: "The request must be sent without compression. The only supported encoding is identity.",
  },
  invalid_request: {
    http: 422,
    code: "invalid_request",
    connect: Code.InvalidArgument,
    message: "A field of the request is invalid.",
  },
  content_refused: {
    http: 422,
    code: "content_refused",
    connect: Code.FailedPrecondition,
    message: "Every model that was asked refused this request. Changing the request may help; waiting does not.",
  },
  request_too_long: {
    http: 422,
    code: "request_too_long",
    connect: Code.InvalidArgument,
    message: "The request is longer than the context window of every model. Send a shorter one.",
  },
  idempotency_key_reused: {
    http: 422,
    code: "idempotency_key_reused",
    connect: Code.InvalidArgument,
    message: "This idempotency key was used for another request. Use a new key for a new request.",
  },
  invalid_response_schema: {
    http: 422,
    code: "invalid_response_schema",
    connect: Code.InvalidArgument,
    message: "The JSON Schema is invalid or not supported.",
  },
  structured_output_streaming_not_supported: {
    http: 422,
    code: "structured_output_streaming_not_supported",
    connect: Code.InvalidArgument,
    message: "A JSON Schema response_format cannot be streamed. Send it to /v1/generate.",
  },
  rate_limited: {
    http: 429,
    connect: Code.ResourceExhausted,
    message: "A rate limit was reached. Wait, then send the request again.",
  },
  spend_limit_reached: {
    http: 429,
    code: "spend_limit_reached",
    connect: Code.ResourceExhausted,
    message: "The spend limit set by the account owner was reached.",
  },
  structured_output_failed: {
    http: 502,
    code: "structured_output_failed",
    connect: Code.Internal,
    message:
      "No answer satisfied the JSON Schema. Nothing was charged; a larger max_tokens or a simpler schema may help.",
  },
  upstream_failed: {
    http: 502,
    code: "upstream_failed",
    connect: Code.Unavailable,
    message: "No model could answer. Nothing was charged; send the request again later.",
    retryAfterMs: 1_000,
  },
  overloaded: {
    http: 503,
    code: "overloaded",
    connect: Code.Unavailable,
    message: "The service cannot accept this request now. Wait, then send it again.",
    retryAfterMs: 1_000,
  },
  timed_out: {
    http: 504,
    code: "timed_out",
    connect: Code.DeadlineExceeded,
    message: "The deadline passed before there was an answer. Nothing was charged.",
  },
  internal: {
    http: 500,
    code: "internal",
    connect: Code.Internal,
    message: "The service failed unexpectedly. Nothing was charged.",
  },
} as const satisfies Record<string, FailureRow>;

export type FailureKind = keyof typeof FAILURES;

export interface FailureInit {
  /** Says what happened and what to do, for the caller. Must not quote the cause. Default: the table's message. */
  message?: string | undefined;
  /** Path of the invalid field, such as `messages[3].role`. */
  field?: string;
  /** Name of the limit that was reached, such as `requests_per_minute`. */
  limit?: string | undefined;
  /** Milliseconds after which the same request may succeed. Default: the table's. */
  retryAfterMs?: number | undefined;
  /** Whether the same request fails until the operator acts. Then the failure states no time. Default false. */
  needsOperator?: boolean;
  /** For the service's log only; never sent to the caller. */
  cause?: unknown;
}

/** A failure that the caller sees. Any other error that is thrown becomes `internal`. */
export class Failure extends Error {
  readonly kind: FailureKind;
  readonly field: string | undefined;
  readonly limit: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly needsOperator: boolean;

  constructor(kind: FailureKind, init: FailureInit = {}) {
    super(init.message ?? FAILURES[kind].message, { cause: init.cause });
    this.name = "Failure";
    this.kind = kind;
    this.field = init.field;
    this.limit = init.limit;
    this.needsOperator = init.needsOperator ?? false;
    this.retryAfterMs = this.needsOperator ? undefined : (init.retryAfterMs ?? this.row.retryAfterMs);
  }

  /** This failure's row of the table. */
  get row(): FailureRow {
    return FAILURES[this.kind];
  }
}

/** Creates the failure `invalid_request` for one field of the request. */
export function invalid(field: string, message: string): Failure {
  return new Failure("invalid_request", { field, message });
}

/** As `invalid`, with a message that begins with the field. @param problem what is wrong with it, and the solution */
export function invalidField(field: string, problem: string): Failure {
  return invalid(field, `${field} ${problem}`);
}

/** Returns a Failure as it is, and wraps any other error as `internal`, with the error as the cause for the log. */
export function toFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure("internal", { cause: error });
}
