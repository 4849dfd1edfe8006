import type { Failure, FailureKind } from "../../contract/failure.ts";
import type { Reply } from "../call/format.ts";
import { failureHeaders, jsonReply } from "../call/json-reply.ts";

/** Paths of OpenAI's API. Its clients read failures only in OpenAI's format, also those of paths that do not exist. */
const PATHS = /^\/v1\/(?:chat|models|responses|completions|embeddings|moderations|images|audio|files|batches)(?:\/|$)/;

/** `error.type` of a failure by its HTTP status; of any other one it is `invalid_request_error`. */
const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "insufficient_quota",
  403: "permission_error",
  429: "rate_limit_error",
  500: "server_error",
  502: "server_error",
  503: "server_error",
  504: "server_error",
};

/** Failures with a status that OpenAI's clients retry, although the next try would fail or take as long. */
const FINAL: ReadonlySet<FailureKind> = new Set(["structured_output_failed", "timed_out", "internal"]);

/** Longest wait that OpenAI's clients keep, in milliseconds. They ignore a longer one and retry at once. */
const MAX_WAIT_MS = 60_000;

export function isOpenaiPath(path: string): boolean {
  return PATHS.test(path);
}

/**
 * The response of a failure in OpenAI's format. An invalid request has the status 400, as there; a key that was used
 * for another one has 422.
 * `X-Should-Retry: false` keeps OpenAI's clients from sending a request again that would fail again.
 */
export function openaiFailure(failure: Failure): Reply {
  const { kind, row, retryAfterMs } = failure;
  const isEndless = row.http === 429 && retryAfterMs === undefined;
  const isFinal = FINAL.has(kind) || isEndless || (retryAfterMs ?? 0) > MAX_WAIT_MS;
  const headers = [...failureHeaders(failure), ...(isFinal ? ["X-Should-Retry", "false"] : [])];
  const status = row.http === 422 && kind !== "idempotency_key_reused" ? 400 : row.http;
  return jsonReply(status, openaiFailureJson(failure), headers);
}

/** The body of a failure in OpenAI's format. A rate limit, which has no code of ours, has OpenAI's. */
export function openaiFailureJson({ kind, row, message, field }: Failure): string {
  const type = TYPES[row.http] ?? "invalid_request_error";
  const more = kind === "not_found" ? " Of OpenAI's API, the service has /v1/chat/completions and /v1/models." : "";
  return JSON.stringify({
    error: { message: message + more, type, param: field ?? null, code: row.code ?? "rate_limit_exceeded" },
  });
}
