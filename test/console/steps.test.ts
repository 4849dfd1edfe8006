import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { type Step, stepOf, withStep } from "../../console/src/playground/steps.ts";
import { StepKind, StepOutcome, StepRole, TraceStepSchema } from "../../gen/chorus/v1/generation_pb.js";

test("replaces a step's start with its end, and keeps steps with different ids apart", () => {
  const begun = create(TraceStepSchema, { id: 1, kind: StepKind.ANSWER, role: StepRole.FAST, startedMs: 3 });
  const ended = create(TraceStepSchema, { ...begun, durationMs: 40, outcome: StepOutcome.OK });
  const steps = [begun, ended].reduce<readonly Step[]>((all, step) => withStep(all, stepOf(step)), []);
  assert.deepEqual(
    steps.map(({ durationMs, outcome }) => [durationMs, outcome]),
    [[40, "ok"]],
  );

  const members = [1, 2].map((id) => stepOf({ ...begun, id, detail: `draft ${id}` }));
  assert.deepEqual(
    members.reduce(withStep, [] as readonly Step[]).map(({ detail }) => detail),
    ["draft 1", "draft 2"],
  );
});
