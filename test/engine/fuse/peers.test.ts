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
const names = (members: Model[]) =>
  peers(members)
    .map(({ name }) => name)
    .join();

test("lets models within 1.5 in log-odds of the best vote", () => {
  assert.equal(names([fast("a", 0.64), fast("b", 0.63), fast("c", 0.64)]), "a,b,c");
  assert.equal(names([strong("a", 0.72), fast("b", 0.64), fast("c", 0.63), fast("d", 0.35)]), "a,b,c");
  assert.equal(names([fast("a", 0.98), fast("b", 0.97), fast("c", 0.9)]), "a,b");
});

test("asks a model alone that dominates the others and that they cannot outvote", () => {
  assert.equal(names([fast("a", 0.64), strong("b", 0.85), fast("c", 0.63)]), "b");
  // Six of .64 can outvote one of .85.
  assert.equal(names([strong("x", 0.85), ..."abcdef".split("").map((name) => fast(name, 0.64))]), "x,a,b,c,d,e,f");
});

test("prefers known accuracy to the tier", () => {
  assert.equal(names([strong("a", 0.6), fast("b", 0.95)]), "b");
});

test("compares models of unknown accuracy by tier", () => {
  assert.equal(names([fast("a"), fast("b")]), "a,b");
  assert.equal(names([fast("a"), fast("b"), strong("c")]), "c");
  assert.equal(names([fast("a", 0.9), strong("b"), strong("c", 0.85)]), "a,b,c");
  assert.equal(names([fast("a"), strong("b"), strong("c")]), "a,b,c");
  assert.equal(names([fast("a"), strong("b"), strong("c"), strong("d")]), "b,c,d");
});

test("accepts one model, or none", () => {
  assert.equal(names([fast("a")]), "a");
  assert.equal(names([]), "");
});

test("always has a voter, and lets each model vote once", () => {
  const member = fc
    .record({ name: fc.string(), tier: fc.constantFrom("fast" as const, "strong" as const) })
    .chain((one) =>
      fc
        .option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined })
        .map((accuracy) => ({ ...one, accuracy })),
    );
  fc.assert(
    fc.property(fc.array(member, { minLength: 1, maxLength: 6 }), (members) => {
      const voters = peers(members);
      assert.ok(voters.length > 0);
      assert.equal(new Set(voters).size, voters.length);
    }),
  );
});
