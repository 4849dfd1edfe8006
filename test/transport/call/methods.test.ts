import assert from "node:assert/strict";
import { test } from "vitest";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { CHORUS_SERVICES, methodRules } from "../../../src/transport/call/methods.ts";

test("every method of the contract declares its callers", () => {
  const rules = methodRules(CHORUS_SERVICES);
  assert.equal(rules.size, CHORUS_SERVICES.flatMap(({ methods }) => methods).length);
  for (const [method, { requirement, label }] of rules) {
    const isCallers = method.parent.typeName === GenerationService.typeName;
    assert.equal("scope" in requirement, isCallers, `${method}`);
    assert.equal(label === "admin", !isCallers, `${method}`);
  }
});

test("refuses to start with a method that does not declare its callers", () => {
  assert.throws(() => methodRules([...CHORUS_SERVICES, Health]), {
    name: "TypeError",
    message: "rpc grpc.health.v1.Health.Check does not state who may call it. Add the option chorus.v1.access.",
  });
});
