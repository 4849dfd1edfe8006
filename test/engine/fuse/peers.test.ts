import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { peers } from "../../../src/engine/fuse/peers.ts";

interface Model {
  name: string;
  tier: "fast" | "strong";
  accuracy?: number;
}

const fast = (name: string, accuracy?: number): Model => ({
  name,
  tier: "fast",
  ...(accuracy === undefined ? {} : { accuracy }),
});
const strong = (name: string, accuracy?: number): Model => ({ ...fast(name, accuracy), tier: "strong" });
const names = (members: Model[]) => {
  const { voters, dominant } = peers(members);
  return [voters.map(({ name }) => name).join(), dominant?.name];
};

test("lets models within 8 points of the best vote", () => {
  assert.deepEqual(names([fast("a", 0.64), fast("b", 0.63), fast("c", 0.64)]), ["a,b,c", undefined]);
  assert.deepEqual(names([strong("a", 0.72), fast("b", 0.64), fast("c", 0.63)]), ["a,b", undefined]);
});

test("calls a model that is further ahead dominant, and lets the next best vote", () => {
  assert.deepEqual(names([fast("a", 0.64), strong("b", 0.85), fast("c", 0.63), fast("d", 0.4)]), ["a,c", "b"]);
});

test("prefers known accuracy to the tier", () => {
  assert.deepEqual(names([strong("a", 0.6), fast("b", 0.9)]), ["a", "b"]);
});

test("compares models of unknown accuracy by tier", () => {
  assert.deepEqual(names([fast("a"), fast("b")]), ["a,b", undefined]);
  assert.deepEqual(names([fast("a"), fast("b"), strong("c")]), ["a,b", "c"]);
  assert.deepEqual(names([fast("a", 0.9), strong("b"), strong("c", 0.85)]), ["b,c", undefined]);
});

test("accepts one model, or none", () => {
  assert.deepEqual(names([fast("a")]), ["a", undefined]);
  assert.deepEqual(names([]), ["", undefined]);
});

test("always has a voter, and gives each model one role", () => {
  const member = fc
    .record({ name: fc.string(), tier: fc.constantFrom("fast" as const, "strong" as const) })
    .chain((one) =>
      fc
        .option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined })
        .map((accuracy) => ({ ...one, accuracy })),
    );
  fc.assert(
    fc.property(fc.array(member, { minLength: 1, maxLength: 6 }), (members) => {
      const { voters, dominant } = peers(members);
      assert.ok(voters.length > 0);
      assert.equal(new Set([...voters, ...(dominant ? [dominant] : [])]).size, voters.length + (dominant ? 1 : 0));
    }),
  );
});
