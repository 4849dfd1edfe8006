import {
  StepKindSchema,
  StepOutcomeSchema,
  StepRoleSchema,
  type TraceStep,
} from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";

/** One step of the Intelligence Trace. */
export interface Step {
  /** Equal in the events for the start and the end of a step. */
  readonly key: string;
  readonly kind: string;
  readonly role: string;
  readonly startedMs: number;
  /** Undefined while it runs. */
  readonly durationMs: number | undefined;
  readonly outcome: string;
  readonly detail: string;
}

/** Converts a step. */
export function stepOf({ id, kind, role, startedMs, durationMs, outcome = 0, detail = "" }: TraceStep): Step {
  return {
    key: `${id}`,
    kind: wordOf(StepKindSchema, kind),
    role: wordOf(StepRoleSchema, role),
    startedMs,
    durationMs,
    outcome: wordOf(StepOutcomeSchema, outcome),
    detail,
  };
}

/** Adds a step, or replaces it if it is already in the list. */
export function withStep(steps: readonly Step[], step: Step): readonly Step[] {
  const isKnown = steps.some(({ key }) => key === step.key);
  return isKnown ? steps.map((one) => (one.key === step.key ? step : one)) : [...steps, step];
}
