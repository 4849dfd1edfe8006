import type { Step } from "../models/port/model.ts";

/** A step of the plan, or of the work before it. */
export interface ReportedStep extends Omit<Step, "kind"> {
  kind: Step["kind"] | "attachments" | "search";
}

/** One step with its times. */
export interface TimedStep {
  /** Number of the step within the answer, from 1. */
  id: number;
  kind: string;
  role: string;
  /** Milliseconds since the trace began. */
  startedMs: number;
  /** Milliseconds; undefined while the step runs. */
  durationMs: number | undefined;
  outcome: string | undefined;
  detail: string | undefined;
}

/** Totals over the steps of an answer. */
interface TraceTotals {
  /** The answer's share of the votes, 0 to 1; undefined without a vote. */
  agreement: number | undefined;
  escalations: number;
  droppedMembers: number;
  repairs: number;
  searches: number;
}

/** Records the steps of one answer. */
export interface Trace {
  /** The steps in the order in which they began. */
  readonly steps: readonly TimedStep[];
  /** Records the start of a step, or the end of the step with the same number. @returns a copy of the recorded step */
  add(step: ReportedStep): TimedStep;
  totals(): TraceTotals;
}

/** @param now a monotonic time in milliseconds; for tests */
export function createTrace(now: () => number = () => performance.now()): Trace {
  const start = now();
  const steps: TimedStep[] = [];
  const byNumber = new Map<number, TimedStep>();
  let agreement: number | undefined;

  return {
    steps,
    add(reported) {
      const elapsed = Math.round(now() - start);
      agreement = reported.agreement ?? agreement;
      let step = byNumber.get(reported.id);
      if (!step) {
        const { kind, role } = reported;
        step = {
          id: steps.length + 1,
          kind,
          role,
          startedMs: elapsed,
          durationMs: undefined,
          outcome: undefined,
          detail: undefined,
        };
        steps.push(step);
        byNumber.set(reported.id, step);
      }
      step.detail = reported.detail ?? step.detail;
      if (reported.outcome !== undefined) {
        step.outcome = reported.outcome;
        // Another model may have answered than the one that was asked first.
        step.role = reported.role;
        step.durationMs = elapsed - step.startedMs;
      }
      return { ...step };
    },
    totals() {
      const count = (is: (step: TimedStep) => boolean) => steps.filter(is).length;
      return {
        agreement,
        escalations: count(({ kind }) => kind === "escalate" || kind === "judge"),
        droppedMembers: count(
          ({ outcome, kind }) => outcome === "dropped" || (kind === "draft" && outcome === "failed"),
        ),
        repairs: count(({ kind }) => kind === "repair" || kind === "reask"),
        searches: count(({ kind }) => kind === "search"),
      };
    },
  };
}
