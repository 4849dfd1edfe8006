import { FAILURES } from "../../contract/failure.ts";

/**
 * Why a call was not sent. `full`: too many calls wait. `late`: it would wait too long. `connections`: the workspace
 * has its share of all connections to vendors. `descriptors`: the process can open no further socket.
 */
export type CallRefusal = "full" | "late" | "connections" | "descriptors";

export interface ModelErrorInit
  extends Partial<Pick<ModelError, "retryAfterMs" | "status" | "kind" | "refusal" | "isCongestion" | "failedShare">> {
  retryable: boolean;
  /** The code that the vendor or the network gives the failure. May be anything. */
  code?: unknown;
  /** What the vendor or the network said. For the log of the service only. */
  cause?: unknown;
}

/** A failed call of one model. The message contains no text of the vendor. */
export class ModelError extends Error {
  override name = "ModelError";
  /** Whether the same call may succeed a little later. */
  readonly retryable: boolean;
  /** The wait that the vendor, or the service for a refused call, asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** HTTP status of the vendor's answer, of the last one if the circuit is open; undefined where there was none. */
  readonly status: number | undefined;
  /**
   * Set if the failure says nothing about the model. `refused`: a safety filter or the model refused. `too_long`: the
   * prompt exceeds the context window. `not_asked`: the model was not called, because its circuit is open or the
   * service did not send the call.
   */
  readonly kind: "refused" | "too_long" | "not_asked" | undefined;
  /**
   * Code of the vendor or of the network: 1 to 64 letters, digits and `_.:-`. It is not named `code`, because the log
   * has the codes of all errors, and a vendor may quote a prompt in it.
   */
  readonly vendorCode: string | undefined;
  /** Why the service did not send the call; of kind `not_asked`. */
  readonly refusal: CallRefusal | undefined;
  /** Whether fewer calls at a time may help: the model is overloaded, or cannot be reached. Default: by the status. */
  readonly isCongestion: boolean;
  /** Set if the model was not called because its circuit is open: share of its recent requests that failed, 0 to 1. */
  readonly failedShare: number | undefined;

  constructor(message: string, init: ModelErrorInit) {
    super(message, { cause: init.cause });
    this.retryable = init.retryable;
    this.retryAfterMs = init.retryAfterMs;
    this.status = init.status;
    this.kind = init.kind;
    this.vendorCode = typeof init.code === "string" && CODE.test(init.code) ? init.code : undefined;
    this.refusal = init.refusal;
    const isOfRequest = init.kind === "refused" || init.kind === "too_long";
    this.isCongestion = init.isCongestion ?? (!isOfRequest && CONGESTED.has(init.status ?? 0));
    this.failedShare = init.failedShare;
  }

  /**
   * The wait after which the vendor, or the service for a call that it did not send, takes calls again: 1 s to 1 h in
   * milliseconds. Undefined if the failure says nothing of a wait, or one does not help.
   */
  get throttledMs(): number | undefined {
    const { status = 0, retryAfterMs, retryable, kind, refusal } = this;
    if (refusal !== undefined) return retryAfterMs;
    if (!CONGESTED.has(status) || kind === "refused" || kind === "too_long") return undefined;
    // Status 503 without a wait is an outage of any kind.
    if (retryAfterMs === undefined && (status === 503 || !retryable)) return undefined;
    return Math.min(THROTTLED_MS.max, Math.max(THROTTLED_MS.min, retryAfterMs ?? THROTTLED_MS.usual));
  }

  /** Whether the vendor refuses the operator's key, account, name of the model or address, which no wait mends. */
  get needsOperator(): boolean {
    const { status = 0, kind, retryable, retryAfterMs } = this;
    if (kind === "refused" || kind === "too_long") return false;
    // A redirect is not followed. An exhausted quota has the status of a rate limit.
    return (
      isRedirect(status) ||
      OPERATOR_AT_FAULT.has(status) ||
      (status === 429 && !retryable && retryAfterMs === undefined)
    );
  }

  /**
   * The code, if it cannot quote a prompt: of a failure that the operator must mend, or of the network. The code of
   * another failure may.
   */
  get safeCode(): string | undefined {
    return this.needsOperator || this.status === undefined ? this.vendorCode : undefined;
  }

  /** Whether the failure says something about the model rather than about this one request. */
  get blamesModel(): boolean {
    return this.kind === undefined && (this.status === undefined || !REQUEST_AT_FAULT.has(this.status));
  }
}

/** Codes are logged and are values of a label, so they cannot be any text. */
const CODE = /^[\w.:-]{1,64}$/;

/**
 * Statuses that the content of one request can cause. Status 401 is about the vendor key, and 402 about its account.
 */
const REQUEST_AT_FAULT: ReadonlySet<number> = new Set([400, 403, 404, 413, 414, 415, 422, 431, 451]);

export function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}

/** Key, account, permission, name of the model. */
const OPERATOR_AT_FAULT: ReadonlySet<number> = new Set([401, 402, 403, 404]);

/** Waits that vendors ask for, in milliseconds. Some ask for none, and some for absurd ones. */
const THROTTLED_MS = { min: 1_000, usual: 5_000, max: 3_600_000 };

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

/**
 * A call that was not sent because the circuit of the model is open.
 * @param failedShare share of the model's recent requests that failed, 0 to 1
 * @param last the model's last failure, which stands for the reason of the open circuit
 * @param sinceMs time since then, in milliseconds
 */
export function circuitOpen(failedShare: number, last: ModelError | undefined, sinceMs: number): ModelError {
  const wait = last?.throttledMs;
  return new ModelError("The model failed repeatedly and is not called for a short time.", {
    retryable: false,
    kind: "not_asked",
    status: last?.status,
    retryAfterMs: wait === undefined ? undefined : Math.max(0, wait - sinceMs),
    isCongestion: false,
    failedShare,
  });
}

/** A call that the service did not send. @param retryAfterMs default: that of `overloaded` */
export function notSent(
  refusal: CallRefusal,
  retryAfterMs: number = FAILURES.overloaded.retryAfterMs,
  cause?: unknown,
): ModelError {
  return new ModelError(REFUSALS[refusal], { retryable: false, kind: "not_asked", refusal, retryAfterMs, cause });
}
