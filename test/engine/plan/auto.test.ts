import assert from "node:assert/strict";
import { test } from "vitest";
import { choosePlan, type PlanCriteria } from "../../../src/engine/plan/plan.ts";
import { Steps } from "../../../src/engine/plan/step.ts";
import { call, collect, textOf } from "../../models/fake-model.ts";
import { catalogueOf, saying } from "./members.ts";

const CRITERIA: PlanCriteria = {
  level: "low",
  effort: "auto",
  kind: "closed",
  shape: "text",
  difficulty: 0,
  streamed: false,
  continues: false,
  hasImages: false,
  deadlineMs: 60_000,
  generation: "gen_1",
  read: () => undefined,
};

/** Two fast models and a strong one, with accuracies from 0 to 1. */
async function answer(says: [string, string, string], criteria: Partial<PlanCriteria>, accuracies: number[] = []) {
  const models = says.map((text) => saying(text));
  const rows = models.map((model, at) => ({
    tier: at === 2 ? ("strong" as const) : ("fast" as const),
    vendor: `v${at}`,
    model,
    ...(accuracies[at] === undefined ? {} : { accuracy: accuracies[at] }),
  }));
  const plan = choosePlan(catalogueOf(...rows), { ...CRITERIA, ...criteria }, new Steps());
  return { text: textOf(await collect(plan.ask(call()))), calls: models.map(({ calls }) => calls.length) };
}

test("auto takes the cascade at every level for questions with one right answer", async () => {
  for (const level of ["low", "medium", "high"] as const)
    for (const kind of ["closed", "maths", "extraction"] as const) {
      assert.deepEqual(await answer(["B", "b)", "C"], { level, kind }), { text: "B", calls: [1, 1, 0] });
      assert.deepEqual(await answer(["B", "A", "C"], { level, kind }), { text: "C", calls: [1, 1, 1] });
    }
});

test("auto goes by the level where answers cannot be compared", async () => {
  for (const kind of ["prose", "code", "conversation"] as const) {
    assert.deepEqual((await answer(["B", "B", "C"], { kind })).calls, [1, 0, 0]);
    assert.deepEqual((await answer(["B", "B", "C"], { kind, level: "medium", difficulty: 1 })).calls, [0, 0, 1]);
  }
});

test("a strong model that dominates is asked alone, at every level", async () => {
  const accuracies = [0.64, 0.63, 0.85];
  for (const effort of ["auto", "medium"] as const)
    assert.deepEqual((await answer(["B", "B", "C"], { level: "medium", effort }, accuracies)).calls, [0, 0, 1]);
  assert.deepEqual((await answer(["B", "B", "C"], { level: "low" }, accuracies)).calls, [0, 0, 1]);
  // .72 is .37 above .64 in log-odds, and .78 is .69 above it: much for facts, but not for calculations.
  assert.deepEqual((await answer(["B", "B", "C"], { level: "medium" }, [0.64, 0.63, 0.78])).calls, [0, 0, 1]);
  assert.deepEqual((await answer(["B", "B", "C"], { kind: "maths" }, [0.64, 0.63, 0.78])).calls, [1, 1, 0]);
  assert.deepEqual((await answer(["B", "B", "C"], { level: "medium" }, [0.64, 0.63, 0.72])).calls, [1, 1, 0]);
});

test("without two fast models of different vendors the level decides", async () => {
  const [fast, strong] = [saying("B"), saying("C")];
  const models = catalogueOf(
    { tier: "fast", vendor: "v", model: fast },
    { tier: "strong", vendor: "v", model: strong },
  );
  await collect(choosePlan(models, CRITERIA, new Steps()).ask(call()));
  assert.deepEqual([fast.calls.length, strong.calls.length], [1, 0]);
});

test("uses the accuracy for the kind of the prompt", async () => {
  const models = [saying("A"), saying("A"), saying("B")];
  const accuracies = [
    { maths: 0.6, knowledge: 0.8 },
    { maths: 0.6, knowledge: 0.8 },
    { maths: 0.9, knowledge: 0.82 },
  ];
  const rows = models.map((model, at) => ({
    ...{ tier: at === 2 ? ("strong" as const) : ("fast" as const), vendor: `v${at}`, model },
    accuracy: accuracies[at] ?? {},
  }));
  const ask = async (kind: "maths" | "closed") => {
    const plan = choosePlan(catalogueOf(...rows), { ...CRITERIA, level: "medium", kind }, new Steps());
    return textOf(await collect(plan.ask(call())));
  };
  assert.deepEqual([await ask("maths"), await ask("closed")], ["B", "A"]);
});
