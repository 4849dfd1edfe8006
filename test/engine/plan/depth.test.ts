import assert from "node:assert/strict";
import { test } from "vitest";
import { choosePlan, type PlanCriteria } from "../../../src/engine/plan/plan.ts";
import { Steps } from "../../../src/engine/plan/step.ts";
import { call, collect } from "../../models/fake-model.ts";
import { catalogueOf, PROSE, saying } from "./members.ts";

/** Depth of each call of two fast models and of two strong ones, which all answer differently. */
async function depths(criteria: Partial<PlanCriteria>) {
  const models = ["A", "B", "C", "D"].map((letter) => saying(`Answer: ${letter}`));
  const rows = models.map((model, at) => ({
    tier: at < 2 ? ("fast" as const) : ("strong" as const),
    vendor: `${at}`,
    model,
  }));
  const asked = { ...PROSE, ...criteria };
  const plan = choosePlan(catalogueOf(...rows), asked, new Steps());
  await collect(plan.ask({ ...call(), endsAt: performance.now() + asked.deadlineMs }));
  return models.map(({ calls }) => calls.map(({ reasoning }) => reasoning).join());
}

test("models think as deeply as the level and their task need", async () => {
  assert.deepEqual(await depths({ level: "low" }), ["low", "", "", ""]);
  assert.deepEqual(await depths({ level: "medium" }), ["", "", "medium", ""]);
  assert.deepEqual(await depths({ level: "medium", kind: "closed" }), ["low", "low", "medium", ""]);
  assert.deepEqual(await depths({ level: "high", kind: "closed" }), ["medium", "medium", "medium,high", "medium"]);
  // The drafts, the analysis and the answer.
  assert.deepEqual(await depths({ level: "high" }), ["medium", "", "medium,low,high", "medium"]);
});

test("models think less if the time is short, so that an answer comes", async () => {
  assert.deepEqual(await depths({ level: "medium", kind: "closed", deadlineMs: 10_000 }), ["low", "low", "low", ""]);
  assert.deepEqual(await depths({ level: "high", kind: "closed", deadlineMs: 20_000 }), [
    "low",
    "low",
    "low,medium",
    "low",
  ]);
});

test("high: a model that thinks at length answers alone where it is better than a vote", async () => {
  const models = [saying("1"), saying("1"), saying("2")];
  const rows = models.map((model, at) => ({
    ...{ tier: "strong" as const, vendor: `${at}`, model },
    ...(at === 2 ? { thinks: true } : {}),
  }));
  // The kind comes from the rater.
  const kind = "output" as PlanCriteria["kind"];
  const ask = async (criteria: Partial<PlanCriteria>) => {
    const plan = choosePlan(catalogueOf(...rows), { ...PROSE, level: "high", ...criteria }, new Steps());
    return collect(plan.ask({ ...call(), endsAt: performance.now() + PROSE.deadlineMs }));
  };
  const all = await ask({ kind });
  assert.equal(models[0]?.calls.length, 0);
  assert.equal(models[2]?.calls[0]?.reasoning, "high");
  const step = all.findLast((piece) => piece.type === "step");
  assert.match(step?.type === "step" ? (step.step.detail ?? "") : "", /one model that thinks at length/);
  await ask({ kind: "maths" });
  assert.equal(models[0]?.calls.length, 1);
});
