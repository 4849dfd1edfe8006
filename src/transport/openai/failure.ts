import type { Failure } from "../../contract/failure.ts";
import type { Reply } from "../call/format.ts";
import { jsonReply } from "../call/json-reply.ts";
import { foreignFailureHeaders, foreignStatus } from "../call/should-retry.ts";

/** The first parts of the paths of OpenAI's API. */
const PARTS = [
  ...["chat", "models", "responses", "conversations", "completions", "embeddings", "moderations", "images", "audio"],
  ...["videos", "files", "uploads", "batches", "vector_stores", "containers", "assistants", "threads", "realtime"],
  ...["fine_tuning", "evals"],
];

/**
 * Paths of OpenAI's API. Its clients read failures only in OpenAI's format, also those of paths that do not exist: with
 * a base URL that has no `/v1`, or that has it twice, too.
 */
const PATHS = new RegExp(`^(?:/v1)*/(?:${PARTS.join("|")})(?:/|$)`);

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

export function isOpenaiPath(path: string): boolean {
  return PATHS.test(path);
}

/**
 * The response of a failure in OpenAI's format. An invalid request has the status 400, as there; a key that was used
 * for another one has 422.
 */
export function openaiFailure(failure: Failure): Reply {
  return jsonReply(foreignStatus(failure), openaiFailureJson(failure), foreignFailureHeaders(failure));
}

/** The body of a failure in OpenAI's format. */
export function openaiFailureJson(failure: Failure): string {
  return JSON.stringify({ error: openaiError(failure) });
}

/** A failure as OpenAI's clients read it. */
export function openaiError(failure: Failure) {
  const { kind, row, message, field } = failure;
  const type = TYPES[row.http] ?? "invalid_request_error";
  const more = kind === "not_found" ? ` Of OpenAI's API, the service has ${SERVED}.` : "";
  return { message: message + more, type, param: field ?? null, code: codeOf(failure) };
}

const SERVED = "/v1/responses, /v1/chat/completions and /v1/models";

/** OpenAI's code for a prompt that is too long. Agents look for it, shorten the conversation and go on. */
const TOO_LONG = "context_length_exceeded";

/** Our code of a failure. A rate limit, which has none of ours, and a prompt that is too long have those of OpenAI. */
export function codeOf({ kind, row }: Failure): string {
  return kind === "request_too_long" ? TOO_LONG : (row.code ?? "rate_limit_exceeded");
}
