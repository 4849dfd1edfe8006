import { type Failure, toFailure } from "../failure.ts";
import { errorFacts, type Log } from "../log.ts";
import { CallerGone, type Facts } from "../service/request-context.ts";
import type { RequestEnd, Telemetry } from "../telemetry.ts";
import { annotate, annotateFailure, traceId } from "../tracing.ts";

/** A request as its transport follows it to its end. */
export interface Tracked {
  readonly transport: RequestEnd["transport"];
  method: RequestEnd["method"];
  readonly requestId: string;
  /** `performance.now()` at arrival. */
  readonly startedAt: number;
  readonly facts: Facts;
}

/** Tells the log, the figures and the trace of every request that has ended, once. */
export type Report = (request: Tracked, error?: unknown) => void;

/**
 * Makes what is called once at the end of each request, with what it threw, if anything. How the request was settled counts before that:
 * a stream whose failure was told in an event throws nothing, and an answer that was charged has been given.
 */
export function createReport(log: Log, telemetry: Telemetry): Report {
  return ({ transport, method, requestId, startedAt, facts }, error) => {
    const failure = error === undefined || error instanceof CallerGone ? undefined : toFailure(error);
    const seconds = (performance.now() - startedAt) / 1_000;
    const outcome = facts.outcome ?? failure?.kind ?? (error === undefined ? "ok" : "caller_gone");
    telemetry.request({ ...facts, transport, method, outcome, seconds });
    annotate(attributesOf(requestId, facts, outcome, failure));
    if (failure) annotateFailure(failure);
    // JSON leaves out what is undefined.
    log.info(
      {
        request_id: requestId,
        trace_id: traceId(),
        generation_id: facts.generationId,
        workspace_id: facts.workspaceId,
        key_id: facts.keyId,
        endpoint: `${transport} ${method}`,
        outcome,
        limit: failure?.limit,
        // Not "level", which is the log's own.
        intelligence_level: facts.level,
        search_failure: facts.searchFailure,
        input_tokens: facts.inputTokens,
        output_tokens: facts.outputTokens,
        cached_tokens: facts.cachedTokens,
        credits: facts.credits,
        latency_ms: Math.round(seconds * 1_000),
      },
      "request",
    );
    reportCause(log, requestId, failure);
  };
}

function attributesOf(requestId: string, facts: Facts, outcome: string, failure: Failure | undefined) {
  return {
    "chorus.request_id": requestId,
    "chorus.generation_id": facts.generationId,
    "chorus.workspace_id": facts.workspaceId,
    "chorus.key_id": facts.keyId,
    "chorus.level": facts.level,
    "chorus.outcome": outcome,
    "chorus.limit": failure?.limit,
    "chorus.input_tokens": facts.inputTokens,
    "chorus.output_tokens": facts.outputTokens,
    "chorus.cached_tokens": facts.cachedTokens,
    "chorus.credits": facts.credits,
  };
}

/** What is not the caller's doing; the caller reads only the failure. */
function reportCause(log: Log, requestId: string, failure: Failure | undefined): void {
  if (failure === undefined || failure.row.http < 500 || failure.cause === undefined) return;
  log.warn({ request_id: requestId, failure: failure.kind, cause: errorFacts(failure.cause) }, "request failed");
}
