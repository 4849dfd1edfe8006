/**
 * Why a call was not sent. `full`: too many calls wait. `late`: it would wait too long. `connections`: the workspace
 * has its share of all connections to vendors. `descriptors`: the process can open no further socket.
 */
export type CallRefusal = "full" | "late" | "connections" | "descriptors";

export interface ModelErrorInit {
  /** Whether the same call may succeed a little later. */
  retryable: boolean;
  /** The wait that the vendor, or the service for a refused call, asks for, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** HTTP status of the vendor's answer; absent where there was none. */
  status?: number | undefined;
  /** Set if the failure says nothing about the model: the request is the cause, or the model was not called. */
  kind?: "refused" | "too_long" | "not_asked" | undefined;
  /** Why the service did not send the call; of kind `not_asked`. */
  refusal?: CallRefusal;
  /** Whether the model is overloaded, or cannot be reached. Statuses that say so need no mark. */
  isCongestion?: boolean;
  /** Set if the model was not called because its circuit is open: share of its recent requests that failed, 0 to 1. */
  failedShare?: number;
  /** What the vendor or the network said. For the log of the service only. */
  cause?: unknown;
}

/** A failed call of one model. The message contains no text of the vendor. */
export class ModelError extends Error {
  override name = "ModelError";
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
  /**
   * `refused`: a safety filter or the model refused. `too_long`: the prompt exceeds the context window. `not_asked`:
   * the model was not called, because its circuit is open or the service did not send the call.
   */
  readonly kind: ModelErrorInit["kind"];
  readonly refusal: CallRefusal | undefined;
  /** Whether fewer calls at a time may help. */
  readonly isCongestion: boolean;
  /** Set if the model was not called because its circuit is open: share of its recent requests that failed, 0 to 1. */
  readonly failedShare: number | undefined;

  constructor(message: string, init: ModelErrorInit) {
    super(message, { cause: init.cause });
    this.retryable = init.retryable;
    this.retryAfterMs = init.retryAfterMs;
    this.status = init.status;
    this.kind = init.kind;
    this.refusal = init.refusal;
    this.isCongestion = init.isCongestion ?? CONGESTED.has(init.status ?? 0);
    this.failedShare = init.failedShare;
  }

  /** Whether the failure says something about the model rather than about this one request. */
  get blamesModel(): boolean {
    return this.kind === undefined && (this.status === undefined || !REQUEST_AT_FAULT.has(this.status));
  }
}

/**
 * Statuses that the content of one request can cause. Status 401 is about the vendor key, and 402 about its account.
 */
const REQUEST_AT_FAULT: ReadonlySet<number> = new Set([400, 403, 404, 413, 414, 415, 422, 431, 451]);

/** Whether the same call may succeed a little later after this HTTP status. */
export function mayPass(status: number): boolean {
  return status >= 500 || PASSING.has(status);
}

const PASSING: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** Too many requests; unavailable; overloaded (Anthropic). */
const CONGESTED: ReadonlySet<number> = new Set([429, 503, 529]);

/** Wraps anything else that a model threw in a ModelError. */
export function toModelError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  return new ModelError("The call failed.", { retryable: true, cause: error });
}

/** The end of a stream or body without the vendor's terminal frame. */
export function cutOff(cause?: unknown): ModelError {
  return new ModelError("The completion ended without the vendor's terminal frame.", { retryable: true, cause });
}

/** The vendor's text is not JSON, or not of its format. */
export function unreadable(cause?: unknown): ModelError {
  return new ModelError("The vendor's answer could not be read.", { retryable: true, cause });
}

const REFUSALS: Readonly<Record<CallRefusal, string>> = {
  full: "Too many calls wait for the model.",
  late: "The call would wait too long for the model.",
  connections: "The workspace has its share of the connections to vendors.",
  descriptors: "The process can open no further socket.",
};

/** A call that the service did not send. @param retryAfterMs default: one second */
export function notSent(refusal: CallRefusal, retryAfterMs = 1_000, cause?: unknown): ModelError {
  return new ModelError(REFUSALS[refusal], { retryable: false, kind: "not_asked", refusal, retryAfterMs, cause });
}
