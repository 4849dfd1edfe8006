/**
 * `timed_out`: no complete response in time. `unreachable`: no connection, or it failed. `refused`: a status other
 * than 200. `unreadable`: the response has a wrong format or is too large. `resting`: the backend is not called for a
 * short time, because it failed repeatedly.
 */
type SearchFailure = "timed_out" | "unreachable" | "refused" | "unreadable" | "resting";

interface SearchErrorInit {
  /** HTTP status of the backend's response. */
  status?: number;
  /** Wait that the backend asked for, in milliseconds. */
  retryAfterMs?: number;
}

/**
 * A failed search. The message is for the operator's log; it contains no key, no query and nothing that the backend
 * sent. `cause` is not set, because an inner error may quote them.
 */
export class SearchError extends Error {
  override name = "SearchError";
  readonly failure: SearchFailure;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(failure: SearchFailure, message: string, init: SearchErrorInit = {}) {
    super(message);
    this.failure = failure;
    this.status = init.status;
    this.retryAfterMs = init.retryAfterMs;
  }

  /** Whether the same search may succeed on a retry. */
  get retryable(): boolean {
    if (this.failure === "unreachable") return true;
    return this.status !== undefined && (this.status === 429 || this.status >= 500);
  }

  /** Whether the backend is to blame, and not this one query. */
  get blamesBackend(): boolean {
    return this.status === undefined || !QUERY_ERRORS.has(this.status);
  }
}

const QUERY_ERRORS: ReadonlySet<number> = new Set([400, 414, 422]);
