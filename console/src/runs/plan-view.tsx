import { EffortSchema, type IntelligenceTrace } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { count, duration, words } from "../format.ts";
import type { Step } from "../playground/steps.ts";
import { planName, scaleOf } from "./plan.ts";
import { PlanDrawing } from "./plan-drawing.tsx";

interface Props {
  steps: readonly Step[];
  /** Undefined until the end of an answer that is streamed. */
  trace: IntelligenceTrace | undefined;
  running: boolean;
  /** Time since the request began, or its latency, in milliseconds. */
  elapsed: number;
  /** Names of the models of a step, by its key; empty if they are not known. */
  modelsOf?: (key: string) => string;
}

/** Why a request got its level, the share of the votes, and its steps as a drawing and a list. */
export function PlanView({ steps, trace, running, elapsed, modelsOf = () => "" }: Props) {
  const end = Math.max(1, elapsed, ...steps.map((step) => step.startedMs + (step.durationMs ?? 0)));
  const who = ({ key, role }: Step) => modelsOf(key) || role;
  const figures = trace ? figuresOf(trace) : [];
  return (
    <>
      {trace && trace.reasons.length > 0 && <p class="soft">Why this level: {trace.reasons.join("; ")}.</p>}
      {trace?.agreement !== undefined && <Agreement share={trace.agreement} />}
      {steps.length > 0 && (
        <PlanDrawing steps={steps} now={running ? end : undefined} length={running ? scaleOf(end) : end} who={who} />
      )}
      <ol class="plan-steps">
        {steps.map((step) => (
          <li key={step.key} class={step.detail ? "" : "hidden"}>
            <strong>{words(step.kind)}</strong> <span class="soft">{who(step)}</span>
            <span class="hidden">
              , {duration(step.durationMs ?? 0)}, {step.outcome || (running ? "running" : "not ended")}
            </span>
            {step.detail && <span class="soft">: {step.detail}</span>}
          </li>
        ))}
      </ol>
      {figures.length > 0 && <p class="soft small">{figures.join(" · ")}</p>}
    </>
  );
}

/** How an answer is made, in a few words. */
export function planText(steps: readonly Step[], trace: IntelligenceTrace): string {
  return `${planName(steps)}, at level ${wordOf(EffortSchema, trace.intelligenceLevel)}`;
}

/** The share of the votes that the leading answer got. */
function Agreement({ share }: { share: number }) {
  const percent = Math.round(share * 100);
  return (
    <div class="agreement">
      <span>Agreement</span>
      <span class="track" aria-hidden="true">
        <span style={{ width: `${percent}%` }} />
      </span>
      <strong>{percent} %</strong>
    </div>
  );
}

/** The counts of the trace that are not 0. */
function figuresOf({
  models,
  escalations,
  droppedMembers,
  repairs,
  searches,
  internalInputTokens,
  internalOutputTokens,
}: IntelligenceTrace): string[] {
  const counted = (of: number, one: string, many = `${one}s`) =>
    of === 0 ? [] : [`${count(of)} ${of === 1 ? one : many}`];
  return [
    ...counted(models, "model"),
    ...counted(escalations, "escalation"),
    ...counted(droppedMembers, "dropped member"),
    ...counted(repairs, "repair"),
    ...counted(searches, "search", "searches"),
    ...counted(Number(internalInputTokens + internalOutputTokens), "internal token"),
  ];
}
