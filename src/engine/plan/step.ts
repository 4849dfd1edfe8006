import type { Piece, Step } from "../../models/port/model.ts";

/** Numbers the steps of one answer in the order in which they begin. */
export class Steps {
  /** Whether anyone reads the steps. */
  readonly areRead: boolean;
  #last = 0;

  constructor(areRead = true) {
    this.areRead = areRead;
  }

  begin(kind: string, role: string): Step {
    this.#last += 1;
    return { id: this.#last, kind, role };
  }
}

/** The start and the end of a repair of an answer. */
export function* repairSteps(steps: Steps): Generator<Extract<Piece, { type: "step" }>> {
  const step = steps.begin("repair", "service");
  yield { type: "step", step };
  yield { type: "step", step: { ...step, outcome: "ok" } };
}

/** The start and the end of the step in which a valid draft becomes the answer. */
export function* fallbackSteps(steps: Steps): Generator<Extract<Piece, { type: "step" }>> {
  const step = steps.begin("fallback", "service");
  yield { type: "step", step };
  yield { type: "step", step: { ...step, outcome: "ok", detail: "a valid draft" } };
}

/** A step as a piece of a completion. This is how a plan reports its steps to the plan around it. */
export function stepPiece(step: Step): Piece {
  return { type: "step", step };
}
