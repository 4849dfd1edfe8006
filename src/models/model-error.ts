import {
  AISDKError,
  APICallError,
  EmptyResponseBodyError,
  InvalidResponseDataError,
  JSONParseError,
  TypeValidationError,
} from "@ai-sdk/provider";

interface ModelErrorInit {
  /** Whether the same call may succeed on a retry. */
  retryable: boolean;
  /** Wait that the vendor asked for before a retry, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** HTTP status of the vendor's response; absent if there was no response. */
  status?: number | undefined;
  /** The error of the vendor or the network. For the service's log only. */
  cause?: unknown;
}

/** A failed call of one model. The message quotes nothing that the vendor sent. */
export class ModelError extends Error {
  override name = "ModelError";
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;

  constructor(message: string, init: ModelErrorInit) {
    super(message, { cause: init.cause });
    this.retryable = init.retryable;
    this.retryAfterMs = init.retryAfterMs;
    this.status = init.status;
  }

  /** Whether the model is to blame, and not this one request. */
  get blamesModel(): boolean {
    return this.status === undefined || !REQUEST_ERRORS.has(this.status);
  }
}

const REQUEST_ERRORS: ReadonlySet<number> = new Set([400, 413, 422]);

/** The AI SDK's errors about the vendor's response. Its other errors are about our call and would repeat. */
const RESPONSE_ERRORS = [EmptyResponseBodyError, InvalidResponseDataError, JSONParseError, TypeValidationError];

/** Turns any error that a model threw, or sent in its stream, into a ModelError. */
export function toModelError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (APICallError.isInstance(error)) return fromApiCall(error);
  if (AISDKError.isInstance(error)) {
    const retryable = RESPONSE_ERRORS.some((kind) => kind.isInstance(error));
    return new ModelError(
      retryable ? "The vendor's response cannot be read." : "The model does not support this call.",
      {
        retryable,
        cause: error,
      },
    );
  }
  // An error frame of a stream, which is a plain object, or a network error.
  const { statusCode, isRetryable } = frame(error);
  return new ModelError(
    statusCode === undefined
      ? "The call failed before the answer was complete."
      : `The vendor sent an error (${statusCode}).`,
    {
      retryable: isRetryable ?? true,
      status: statusCode,
      cause: error,
    },
  );
}

function fromApiCall(error: APICallError): ModelError {
  const { statusCode: status, responseHeaders: headers = {} } = error;
  if (status === undefined || status < 300) {
    // No connection, a truncated body, or a body that is not JSON.
    return new ModelError("The call failed before the answer was complete.", { retryable: true, cause: error });
  }
  const body = parseBody(error.responseBody);
  const shouldRetry = headers["x-should-retry"];
  const retryable =
    body.code !== "insufficient_quota" && (shouldRetry === "true" || (shouldRetry !== "false" && error.isRetryable));
  return new ModelError(`The vendor answered with status ${status}.`, {
    retryable,
    retryAfterMs: retryAfter(headers) ?? body.retryDelayMs,
    status,
    cause: error,
  });
}

function frame(error: unknown): { statusCode?: number; isRetryable?: boolean } {
  if (typeof error !== "object" || error === null || error instanceof Error) return {};
  const { statusCode, isRetryable } = error as Record<string, unknown>;
  return {
    ...(typeof statusCode === "number" ? { statusCode } : {}),
    ...(typeof isRetryable === "boolean" ? { isRetryable } : {}),
  };
}

/**
 * Reads `retry-after-ms` (OpenAI), or `retry-after` in seconds or as a date (RFC 9110, section 10.2.3). In
 * milliseconds.
 */
function retryAfter(headers: Record<string, string>): number | undefined {
  const ms = Number.parseFloat(headers["retry-after-ms"] ?? "");
  if (ms >= 0) return ms;
  const text = headers["retry-after"] ?? "";
  const seconds = Number(text);
  if (text !== "" && seconds >= 0) return seconds * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/**
 * Reads from an error body what matters for a retry: OpenAI's code, and the delay ("34.07s") of Gemini's
 * google.rpc.RetryInfo.
 */
function parseBody(text = ""): { code?: unknown; retryDelayMs?: number } {
  let error: { code?: unknown; details?: unknown };
  try {
    error = JSON.parse(text).error ?? {};
  } catch {
    return {};
  }
  const details: unknown[] = Array.isArray(error.details) ? error.details : [];
  for (const detail of details) {
    const { retryDelay } = (detail ?? {}) as { retryDelay?: unknown };
    const seconds = typeof retryDelay === "string" ? Number.parseFloat(retryDelay) : Number.NaN;
    if (seconds >= 0) return { code: error.code, retryDelayMs: seconds * 1_000 };
  }
  return { code: error.code };
}
