import { Code } from "@connectrpc/connect";

interface FailureRow {
  /** HTTP status of the public facade. */
  readonly http: number;
  /** Stable code of the body; absent for a plain rate limit. */
  readonly code?: string;
  /** Code of the same failure over Connect, gRPC and gRPC-Web. */
  readonly connect: Code;
  /** What the caller reads where the thrower says nothing better. */
  readonly message: string;
}

/**
 * The one table in which a failure meets its HTTP status, its code and its Connect code. No failure is charged.
 * Source: the failure table of the contract, in `docs/failures.md`, which a test holds to this one.
 */
export const FAILURES = {
  invalid_json: {
    http: 400,
    code: "invalid_json",
    connect: Code.InvalidArgument,
    message: "The body must be one JSON object in UTF-8.",
  },
  unauthenticated: {
    http: 401,
    code: "unauthenticated",
    connect: Code.Unauthenticated,
    message: "The request needs a valid API key in the header X-API-Key.",
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
      "The request does not come from a page of this address. Behind a proxy that changes the host, set CHORUS_TRUSTED_PROXIES.",
  },
  not_found: {
    http: 404,
    code: "not_found",
    connect: Code.Unimplemented,
    message: "There is nothing at this path.",
  },
  unknown_entity: {
    http: 404,
    code: "not_found",
    connect: Code.NotFound,
    message: "There is no such thing.",
  },
  method_not_allowed: {
    http: 405,
    code: "method_not_allowed",
    connect: Code.Unimplemented,
    message: "This path does not take that method; the header Allow names the one it takes.",
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
    message: "The body is larger than 64 MB (67,108,864 bytes). Send less.",
  },
  unsupported_media_type: {
    http: 415,
    code: "unsupported_media_type",
    connect: Code.InvalidArgument,
    message: "The body must be sent as Content-Type: application/json, without a content encoding.",
  },
  invalid_request: {
    http: 422,
    code: "invalid_request",
    connect: Code.InvalidArgument,
    message: "A field of the request is not acceptable.",
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
    message: "The JSON Schema is not acceptable.",
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
  },
  overloaded: {
    http: 503,
    code: "overloaded",
    connect: Code.Unavailable,
    message: "The service has no room for this request now. Send it again after the stated time.",
  },
  timed_out: {
    http: 504,
    code: "timed_out",
    connect: Code.DeadlineExceeded,
    message: "There was no answer before the deadline. Nothing was charged.",
  },
  internal: {
    http: 500,
    code: "internal",
    connect: Code.Internal,
    message: "Something went wrong inside the service. Nothing was charged.",
  },
} as const satisfies Record<string, FailureRow>;

export type FailureKind = keyof typeof FAILURES;

export interface FailureInit {
  /** What happened and what to do, for the caller. Default: the table's message. Never holds an inner cause. */
  message?: string;
  /** Path of the field at fault, such as `messages[3].role`. */
  field?: string;
  /** Name of the limit that refused, such as `requests_per_minute`. */
  limit?: string;
  /** Milliseconds after which the same request may pass. */
  retryAfterMs?: number;
  /** For the log of the service only; never reaches the caller. */
  cause?: unknown;
}

/** A failure as the caller sees it. Anything else that is thrown becomes `internal`. */
export class Failure extends Error {
  readonly kind: FailureKind;
  readonly field: string | undefined;
  readonly limit: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(kind: FailureKind, init: FailureInit = {}) {
    super(init.message ?? FAILURES[kind].message, { cause: init.cause });
    this.name = "Failure";
    this.kind = kind;
    this.field = init.field;
    this.limit = init.limit;
    this.retryAfterMs = init.retryAfterMs;
  }

  /** The table's row of this failure. */
  get row(): FailureRow {
    return FAILURES[this.kind];
  }
}

/** Shorthand for the commonest failure: a field of the request that is not acceptable. */
export function invalid(field: string, message: string): Failure {
  return new Failure("invalid_request", { field, message });
}

/** Turns anything thrown into a Failure; what is unknown becomes `internal` with the cause kept for the log. */
export function toFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure("internal", { cause: error });
}
