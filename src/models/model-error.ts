import {
  AISDKError,
  APICallError,
  EmptyResponseBodyError,
  InvalidResponseDataError,
  JSONParseError,
  TypeValidationError,
} from "@ai-sdk/provider";

export interface ModelErrorInit {
  /** Whether the same call may succeed a little later. */
  retryable: boolean;
  /** The wait that the vendor asked for, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** HTTP status of the vendor's answer; absent where there was none. */
  status?: number | undefined;
  /** What the vendor or the network said. For the log of the service only. */
  cause?: unknown;
}

/** A call of one model that failed. The message holds nothing that the vendor said. */
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

  /** Whether the failure says something about the model rather than about this one request. */
  get blamesModel(): boolean {
    return this.status === undefined || !REQUEST_AT_FAULT.has(this.status);
  }
}

const REQUEST_AT_FAULT: ReadonlySet<number> = new Set([400, 413, 422]);

/** Errors of the AI SDK about what the vendor sent; its other errors are about what we asked for, and come again. */
const BAD_ANSWER = [EmptyResponseBodyError, InvalidResponseDataError, JSONParseError, TypeValidationError];

/** Gives whatever a model threw, or sent as an error in its stream, the shape of a ModelError. */
export function toModelError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (APICallError.isInstance(error)) return fromApiCall(error);
  if (AISDKError.isInstance(error)) {
    const retryable = BAD_ANSWER.some((kind) => kind.isInstance(error));
    return new ModelError(retryable ? "The answer made no sense." : "The model cannot take this call.", {
      retryable,
      cause: error,
    });
  }
  // An error frame of a stream (a plain object), or trouble of the network.
  const { statusCode, isRetryable } = frame(error);
  return new ModelError(
    statusCode === undefined ? "The call broke off." : `The vendor sent an error (${statusCode}).`,
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
    // Cut off, not JSON, or never connected.
    return new ModelError("The call failed before a whole answer came.", { retryable: true, cause: error });
  }
  const body = parseBody(error.responseBody);
  const asked = headers["x-should-retry"];
  const retryable =
    body.code !== "insufficient_quota" && (asked === "true" || (asked !== "false" && error.isRetryable));
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

/** `retry-after-ms` (OpenAI), or `retry-after` in seconds or as a date (RFC 9110, 10.2.3). */
function retryAfter(headers: Record<string, string>): number | undefined {
  const ms = Number.parseFloat(headers["retry-after-ms"] ?? "");
  if (ms >= 0) return ms;
  const text = headers["retry-after"] ?? "";
  const seconds = Number(text);
  if (text !== "" && seconds >= 0) return seconds * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** What the body of an error says about trying again: OpenAI's code, and Gemini's google.rpc.RetryInfo with its "34.07s". */
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
