import { Effort, type IntelligenceTrace } from "../../../gen/chorus/v1/generation_pb.js";
import { count, duration, words } from "../format.ts";
import type { Step } from "./steps.ts";

const LEVELS: Partial<Record<Effort, string>> = {
  [Effort.LOW]: "low",
  [Effort.MEDIUM]: "medium",
  [Effort.HIGH]: "high",
};

interface Props {
  steps: readonly Step[];
  /** Undefined until the end. */
  trace: IntelligenceTrace | undefined;
  /** Length of the timeline, in milliseconds. */
  elapsed: number;
}

/** The Intelligence Trace as a timeline of steps. */
export function Trace({ steps, trace, elapsed }: Props) {
  if (steps.length === 0) return null;
  const length = Math.max(1, ...steps.map((step) => step.startedMs + (step.durationMs ?? 0)), trace ? 0 : elapsed);
  const level = trace && LEVELS[trace.intelligenceLevel];
  const reasons = trace?.reasons ?? [];
  const figures = trace ? figuresOf(trace) : [];
  return (
    <section class="trace">
      <h3>Intelligence trace</h3>
      {level && (
        <p>
          Level <strong>{level}</strong>
          {reasons.length > 0 && <span class="soft">: {reasons.join("; ")}</span>}
        </p>
      )}
      {figures.length > 0 && <p class="soft">{figures.join(" · ")}</p>}
      <ol>
        {steps.map((step) => (
          <Line key={step.key} step={step} length={length} />
        ))}
      </ol>
      <p class="scale soft" aria-hidden="true">
        <span>0</span>
        <span>{duration(length)}</span>
      </p>
    </section>
  );
}

function Line({ step, length }: { step: Step; length: number }) {
  const { kind, role, startedMs, durationMs, outcome, detail } = step;
  const lasted = durationMs ?? Math.max(0, length - startedMs);
  const state = durationMs === undefined ? "running" : outcome;
  return (
    <li class={state}>
      <span class="what">
        <strong>{words(kind)}</strong> <span class="soft">{role}</span>
      </span>
      <span class="track" aria-hidden="true">
        <span
          style={{ marginLeft: `${(startedMs / length) * 100}%`, width: `${Math.max(0.5, (lasted / length) * 100)}%` }}
        />
      </span>
      <span class="took">
        {durationMs === undefined ? "running" : duration(durationMs)}
        {outcome && outcome !== "ok" && ` · ${outcome}`}
      </span>
      {detail && <span class="detail soft">{detail}</span>}
    </li>
  );
}

/** The counts of the trace that are not 0. */
function figuresOf(trace: IntelligenceTrace): string[] {
  const { models, agreement, escalations, droppedMembers, repairs, searches } = trace;
  const counted = (of: number, one: string, many = `${one}s`) =>
    of === 0 ? [] : [`${count(of)} ${of === 1 ? one : many}`];
  const tokens = Number(trace.internalInputTokens + trace.internalOutputTokens);
  return [
    ...counted(models, "model"),
    ...(agreement === undefined ? [] : [`${Math.round(agreement * 100)} % agreement`]),
    ...counted(escalations, "escalation"),
    ...counted(droppedMembers, "dropped member"),
    ...counted(repairs, "repair"),
    ...counted(searches, "search", "searches"),
    ...counted(tokens, "internal token"),
  ];
}
