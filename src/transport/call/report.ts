import { CallerGone } from "../../contract/endings.ts";
import { type Failure, toFailure } from "../../contract/failure.ts";
import type { Facts } from "../../generate/request-context.ts";
import { errorFacts, type Log } from "../../telemetry/log.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { annotate, annotateFailure, isRecording, traceId } from "../../telemetry/tracing.ts";
import type { Call } from "./call.ts";

/** Reports a request that has ended to the log, the metrics and the trace. It never throws. */
export type Report = (call: Reported, error?: unknown) => void;

type Reported = Pick<Call, "transport" | "method" | "requestId" | "startedAt" | "facts">;

/**
 * Creates the function to call once at the end of each request, with the error that ended it, if any. The outcome that
 * the service has settled takes precedence over that error: a stream may send its failure as an event, and a charged
 * answer was delivered.
 */
export function createReport(log: Log, telemetry: Telemetry): Report {
  const report: Report = ({ transport, method, requestId, startedAt, facts }, error) => {
    const failure = error === undefined || error instanceof CallerGone ? undefined : toFailure(error);
    const seconds = (performance.now() - startedAt) / 1_000;
    const outcome = facts.outcome ?? failure?.kind ?? (error === undefined ? "ok" : "caller_gone");
    telemetry.request({ ...facts, transport, method, outcome, seconds });
    if (isRecording()) {
      annotate(attributesOf(requestId, facts, outcome, failure));
      if (failure) annotateFailure(failure);
    }
    // JSON leaves out undefined members.
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
        // The log itself uses the name "level".
        intelligence_level: facts.level,
        tags: facts.tags,
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
  return (request, error) => telemetry.errors.guard("report", () => report(request, error));
}

function attributesOf(requestId: string, facts: Facts, outcome: string, failure: Failure | undefined) {
  return {
    "chorus.request_id": requestId,
    "chorus.generation_id": facts.generationId,
    // The same, as OpenTelemetry names it.
    "gen_ai.response.id": facts.generationId,
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

/** Logs the cause of a failure on the service's side. Callers never see the cause. */
function reportCause(log: Log, requestId: string, failure: Failure | undefined): void {
  if (failure === undefined || failure.row.http < 500 || failure.cause === undefined) return;
  log.warn({ request_id: requestId, failure: failure.kind, cause: errorFacts(failure.cause) }, "request failed");
}
