import type { Part } from "../../models/stream.ts";

/**
 * One step of a plan. It is reported twice: when it begins and when it ends. It names roles only, never a model, a
 * vendor or any text of the request or the answer.
 */
export interface Step {
  /** Number within the answer, from 1; the same at the begin and at the end of a step. */
  id: number;
  /**
   * `answer`, `draft`, `vote`, `judge`, `analysis`, `write`, `hedge`, `fallback`, `repair`, `reask`, `escalate`, or a
   * kind that the service adds.
   */
  kind: string;
  /** `fast`, `strong` or `service`. */
  role: string;
  /** Absent when the step begins. `dropped`: it was cancelled, because its result was no longer needed. */
  outcome?: "ok" | "failed" | "dropped";
  /** Result of the step, as a phrase for the trace. */
  detail?: string;
  /** Of a vote: the winner's share of the weight of all votes, 0 to 1. */
  agreement?: number;
}

/** Numbers the steps of one answer in the order in which they begin. */
export class Steps {
  #last = 0;

  begin(kind: string, role: string): Step {
    this.#last += 1;
    return { id: this.#last, kind, role };
  }
}

/** A step as a part of a model's stream. This is how a plan reports its steps to the plan around it. */
export function stepPart(step: Step): Part {
  return { type: "raw", rawValue: step };
}

/** The step that a part carries. Vendors send no `raw` parts, because no call asks for them. */
export function partStep(part: Part): Step | undefined {
  return part.type === "raw" ? (part.rawValue as Step) : undefined;
}
