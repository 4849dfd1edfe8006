import type { Part } from "../../models/stream.ts";

/** One step of the way to an answer, as it begins and again as it ends. Roles only: no name of a model or vendor, nothing of a text. */
export interface Step {
  /** Number within the answer, from 1; the end of a step has that of its beginning. */
  id: number;
  /** `answer`, `draft`, `vote`, `judge`, `analysis`, `write`, `hedge`, `fallback`, `repair`, `reask`, `escalate`, or a service's own. */
  kind: string;
  /** `fast`, `strong` or `service`. */
  role: string;
  /** Absent when the step begins. `dropped`: nobody waited for it any more. */
  outcome?: "ok" | "failed" | "dropped";
  /** What came of it, in words for people. */
  detail?: string;
  /** Of a vote: share of the weight of all votes that the winner got, 0 to 1. */
  agreement?: number;
}

/** The steps of one answer, numbered in the order in which they begin. */
export class Steps {
  #last = 0;

  begin(kind: string, role: string): Step {
    this.#last += 1;
    return { id: this.#last, kind, role };
  }
}

/** A step as a part of a model's stream, which is how plans inside plans tell of theirs. */
export function stepPart(step: Step): Part {
  return { type: "raw", rawValue: step };
}

/** The step that a part carries. No vendor sends `raw` parts, because no call asks for them. */
export function partStep(part: Part): Step | undefined {
  return part.type === "raw" ? (part.rawValue as Step) : undefined;
}
