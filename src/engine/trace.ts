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
  escalations: number;
  droppedMembers: number;
  repairs: number;
  searches: number;
}

/** Records the steps of one answer. A class, because it is held for as long as the answer lasts. */
export class Trace {
  readonly #now: () => number;
  /** On the clock of `now`. */
  readonly startedAt: number;
  readonly #steps: TimedStep[] = [];
  /** Numbers of the steps as they were reported, by place. */
  readonly #reported: number[] = [];
  #agreement: number | undefined;

  /** @param now a monotonic time in milliseconds; for tests */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.startedAt = now();
  }

  /** The steps in the order in which they began. */
  get steps(): readonly TimedStep[] {
    return this.#steps;
  }

  /** Number within the answer of the step that was reported with this number; undefined if none was. */
  numberOf(reported: number): number | undefined {
    const place = this.#reported.indexOf(reported);
    return place < 0 ? undefined : place + 1;
  }

  /** Records the start of a step, or the end of the step with the same number. @returns a copy of the recorded step */
  add({ id, kind, role, outcome, detail, agreement }: ReportedStep): TimedStep {
    const elapsed = Math.round(this.#now() - this.startedAt);
    this.#agreement = agreement ?? this.#agreement;
    let step = this.#steps[this.#reported.indexOf(id)];
    if (!step) {
      const begun = { startedMs: elapsed, durationMs: undefined, outcome: undefined, detail: undefined };
      step = { id: this.#steps.length + 1, kind, role, ...begun };
      this.#steps.push(step);
      this.#reported.push(id);
    }
    step.detail = detail ?? step.detail;
    if (outcome !== undefined) {
      step.outcome = outcome;
      // Another model may have answered than the one that was asked first.
      step.role = role;
      step.durationMs = elapsed - step.startedMs;
    }
    return { ...step };
  }

  /** The answer's share of the votes, 0 to 1; undefined without a vote. */
  get agreement(): number | undefined {
    return this.#agreement;
  }
}

export function totalsOf(steps: readonly Pick<TimedStep, "kind" | "outcome">[]): TraceTotals {
  const count = (is: (step: Pick<TimedStep, "kind" | "outcome">) => boolean) => steps.filter(is).length;
  return {
    escalations: count(({ kind }) => kind === "escalate" || kind === "judge"),
    droppedMembers: count(({ outcome, kind }) => outcome === "dropped" || (kind === "draft" && outcome === "failed")),
    repairs: count(({ kind }) => kind === "repair" || kind === "reask"),
    searches: count(({ kind }) => kind === "search"),
  };
}
