import type { Failure, FailureKind } from "../../contract/failure.ts";
import type { Reply } from "../call/format.ts";
import { jsonReply } from "../call/json-reply.ts";
import { foreignFailureHeaders, foreignStatus } from "../call/should-retry.ts";

/** Paths of Anthropic's API. Its clients read failures only in Anthropic's format, also those of unknown paths. */
const PATHS = /^\/v1\/(?:messages|complete|skills|beta)(?:\/|$)/;

/** `error.type` by the status (Anthropic's documentation, "Errors"). Any other one is `invalid_request_error`. */
const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/**
 * The member that lets Anthropic store a conversation, which the service does not do. Clients that send it by default,
 * such as the tool runner of `@anthropic-ai/sdk`, send the whole conversation once they read `DETAILS`.
 */
export const THREAD = "thread";

const DETAILS = { error_code: "thread_unsupported_request", unsupported: [THREAD] };

/** Statuses that differ from the table of failures: in Anthropic's API, an overloaded service has 529. */
const STATUSES: Readonly<Partial<Record<FailureKind, number>>> = { overloaded: 529 };

/**
 * How the message of a prompt that is too long begins in Anthropic's API. Agents such as Claude Code look for these
 * words, summarise the conversation and go on; with other words, their task ends.
 */
const TOO_LONG = "prompt is too long: ";

export function isAnthropicPath(path: string): boolean {
  return PATHS.test(path);
}

/** The response of a failure in Anthropic's format. */
export function anthropicFailure(failure: Failure, { requestId }: { readonly requestId: string }): Reply {
  return jsonReply(statusOf(failure), anthropicFailureJson(failure, requestId), foreignFailureHeaders(failure));
}

/** The body of a failure in Anthropic's format, which has no place for the member but the message. */
export function anthropicFailureJson(failure: Failure, requestId: string): string {
  const type = TYPES[statusOf(failure)] ?? "invalid_request_error";
  const { field = "", message, kind } = failure;
  const more = kind === "not_found" ? " Of Anthropic's API, the service has /v1/messages and /v1/models." : "";
  const named = kind === "request_too_long" ? TOO_LONG : message.includes(field) ? "" : `${field}: `;
  const error = {
    type,
    message: `${named}${message}${more}`,
    ...(field === THREAD ? { details: DETAILS } : {}),
  };
  return JSON.stringify({ type: "error", error, request_id: requestId });
}

function statusOf(failure: Failure): number {
  return STATUSES[failure.kind] ?? foreignStatus(failure);
}
