import type { Trace } from "../engine/trace.ts";
import type { RunKeeper } from "../runs/keeper.ts";
import type { RunFacts } from "../runs/record.ts";
import { writeText } from "../runs/text.ts";
import type { Progress } from "./progress.ts";

/** Shows how an answer is made while it is. */
export function showRun(runs: Pick<RunKeeper, "begin">, progress: Progress): void {
  const { id, context, streamed, checked, subjects, input, trace } = progress;
  const { workspaceId, keyId } = context.caller;
  if (!trace) return;
  const look = () => {
    const { level } = progress.choice;
    const latencyMs = Math.round(performance.now() - context.startedAt);
    const request = { id, requestId: context.requestId, keyId, streamed, shape: checked.shape, effort: checked.effort };
    const facts = { ...request, ...subjects, level, inputTokens: input.inputTokens, latencyMs };
    return { facts, run: runOf(progress, trace) };
  };
  runs.begin(id, { workspaceId, look });
}

/** Leaves how an answer was made, and its text where that is kept. */
export function leaveRun(runs: Pick<RunKeeper, "keep">, progress: Progress): void {
  const { id, context, trace } = progress;
  const { workspaceId, keyId } = context.caller;
  if (!trace) return;
  const text = textOf(progress, trace);
  runs.keep(workspaceId, id, runOf(progress, trace), text && { keyId, text });
}

/** @returns undefined where no text is kept */
function textOf({ said, checked, delivered, calls }: Progress, trace: Trace): Uint8Array | undefined {
  if (!said) return undefined;
  const drafts = Array.from(said.drafts, ([step, text]) => ({ step: trace.numberOf(step) ?? 0, text }));
  return writeText({ ...said, conversation: checked.conversation, drafts, answer: delivered, calls });
}

function runOf({ choice, cost, notices }: Progress, trace: Trace): RunFacts {
  return { trace, reasons: choice.reasons, calls: cost.calls, count: cost.count, notices };
}
