/**
 * `timed_out`: no whole answer in time. `unreachable`: no connection, or it broke. `refused`: a status other than 200.
 * `unreadable`: not what the backend's format allows, or too large. `resting`: it failed too often lately and is not asked.
 */
export type SearchFailure = "timed_out" | "unreachable" | "refused" | "unreadable" | "resting";

export interface SearchErrorInit {
  /** HTTP status of the backend's answer. */
  status?: number;
  /** The wait that the backend asked for, in milliseconds. */
  retryAfterMs?: number;
}

/**
 * A search that gave no results because it failed. The message is for the operator's log; it holds no key, no query and nothing that the
 * backend said. There is no cause, because causes quote.
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

  /** Whether the same search may succeed a little later. */
  get retryable(): boolean {
    if (this.failure === "unreachable") return true;
    return this.status !== undefined && (this.status === 429 || this.status >= 500);
  }

  /** Whether the failure says something about the backend rather than about this one query. */
  get blamesBackend(): boolean {
    return this.status === undefined || !QUERY_AT_FAULT.has(this.status);
  }
}

const QUERY_AT_FAULT: ReadonlySet<number> = new Set([400, 414, 422]);
