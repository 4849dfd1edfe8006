import type { Failure, FailureKind } from "../../contract/failure.ts";
import { failureHeaders } from "./json-reply.ts";

/** Failures with a status that clients retry, although the next try would fail or take as long. */
const FINAL: ReadonlySet<FailureKind> = new Set(["structured_output_failed", "timed_out", "internal"]);

/** Statuses of the caller's own faults after which another try can help: a slow request, and a repeated key. */
const PASSING: ReadonlySet<number> = new Set([408, 409]);

/** Longest wait that the clients keep, in milliseconds. They ignore a longer one and retry at once. */
const MAX_WAIT_MS = 60_000;

/**
 * The headers of a failure for the clients of OpenAI and Anthropic. `X-Should-Retry: false` keeps them from sending a
 * request again that would fail again.
 */
export function foreignFailureHeaders(failure: Failure): string[] {
  const { kind, row, retryAfterMs, needsOperator } = failure;
  // Some agents send a request again whatever its status is, such as Claude Code one with a wrong key.
  const isOfCaller = row.http < 500 && !PASSING.has(row.http) && retryAfterMs === undefined;
  const isFinal = FINAL.has(kind) || needsOperator || isOfCaller || (retryAfterMs ?? 0) > MAX_WAIT_MS;
  return [...failureHeaders(failure), ...(isFinal ? ["X-Should-Retry", "false"] : [])];
}

/** The status of a failure in other APIs, where an invalid request has 400. */
export function foreignStatus({ kind, row }: Failure): number {
  return row.http === 422 && kind !== "idempotency_key_reused" ? 400 : row.http;
}
