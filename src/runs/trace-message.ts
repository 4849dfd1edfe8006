import { create } from "@bufbuild/protobuf";
import {
  EffortSchema,
  type IntelligenceTrace,
  IntelligenceTraceSchema,
  StepKindSchema,
  StepOutcomeSchema,
  StepRoleSchema,
  type TraceStep,
  TraceStepSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../contract/json-names.ts";
import { type TimedStep, totalsOf } from "../engine/trace.ts";

/** What an Intelligence Trace is made from. */
export interface Traced {
  /** `low`, `medium` or `high`. */
  readonly level: string;
  readonly reasons: readonly string[];
  readonly steps: readonly TimedStep[];
  readonly agreement: number | undefined;
  /** Number of models that were called. */
  readonly models: number;
  /** Of all calls, as the vendors count them. */
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
}

/** The Intelligence Trace of an answer. It names roles, never models or vendors. */
export function traceMessage({ agreement, ...traced }: Traced): IntelligenceTrace {
  return create(IntelligenceTraceSchema, {
    intelligenceLevel: numberOf(EffortSchema, traced.level),
    reasons: [...traced.reasons],
    models: traced.models,
    ...(agreement === undefined ? {} : { agreement }),
    ...totalsOf(traced.steps),
    internalInputTokens: traced.inputTokens,
    internalOutputTokens: traced.outputTokens,
    steps: traced.steps.map(stepMessage),
  });
}

export function stepMessage({ kind, role, durationMs, outcome, detail, ...step }: TimedStep): TraceStep {
  return create(TraceStepSchema, {
    ...step,
    kind: numberOf(StepKindSchema, kind),
    role: numberOf(StepRoleSchema, role),
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(outcome === undefined ? {} : { outcome: numberOf(StepOutcomeSchema, outcome) }),
    ...(detail === undefined ? {} : { detail }),
  });
}
