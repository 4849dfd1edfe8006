import type { Step } from "./plan/step.ts";

/** A step of the answer, or one of what goes before it. */
export interface ToldStep extends Omit<Step, "kind"> {
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

/** What the steps of an answer come to. */
export interface TraceSums {
  /** Share of the votes that the answer got, 0 to 1; undefined when nobody voted. */
  agreement: number | undefined;
  escalations: number;
  droppedMembers: number;
  repairs: number;
  searches: number;
}

/** The steps of one answer, as they begin and end. */
export interface Trace {
  /** The steps in the order in which they began. */
  readonly steps: readonly TimedStep[];
  /** Books the beginning of a step, or the end of the one with its number, and gives it as it stands now. */
  add(step: ToldStep): TimedStep;
  sums(): TraceSums;
}

/** @param now the time in milliseconds, of which only differences count; for tests */
export function createTrace(now: () => number = () => performance.now()): Trace {
  const start = now();
  const steps: TimedStep[] = [];
  const byNumber = new Map<number, TimedStep>();
  let agreement: number | undefined;

  return {
    steps,
    add(told) {
      const elapsed = Math.round(now() - start);
      agreement = told.agreement ?? agreement;
      let step = byNumber.get(told.id);
      if (!step) {
        const { kind, role } = told;
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
        byNumber.set(told.id, step);
      }
      step.detail = told.detail ?? step.detail;
      if (told.outcome !== undefined) {
        step.outcome = told.outcome;
        step.durationMs = elapsed - step.startedMs;
      }
      return { ...step };
    },
    sums() {
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
