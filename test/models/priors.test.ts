import assert from "node:assert/strict";
import { test } from "vitest";
import { createCatalogue } from "../../src/models/catalogue.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { priorOf } from "../../src/models/priors.ts";

test("finds the family of a model by the beginning of its identifier", () => {
  assert.equal(priorOf("gpt-4o-mini-2024-07-18")?.knowledge, 0.82);
  assert.equal(priorOf("gpt-4o-2024-08-06")?.maths, 0.759);
  assert.deepEqual(priorOf("meta-llama/Meta-Llama-3.1-70B-Instruct"), priorOf("llama3.1:70b"));
  assert.equal(priorOf("somebody/fine-tune"), undefined);
});

function accuracies(...entries: Array<Pick<ModelEntry, "model"> & Partial<ModelEntry>>) {
  const catalogue = createCatalogue(
    entries.map((entry, at): ModelEntry => {
      const shared = { name: `m${at}`, vendor: "openai" as const, tier: "fast" as const, apiKey: "k" };
      return { ...shared, images: false, jsonSchema: true, ...entry };
    }),
    { connectMs: 1, firstTokenMs: 1, betweenChunksMs: 1 },
  );
  return catalogue.members.map(({ accuracy }) => accuracy);
}

test("uses published accuracies only if the families of all models are known", () => {
  const [mini] = accuracies({ model: "gpt-4o-mini" }, { model: "gpt-4o" });
  assert.deepEqual(mini, { knowledge: 0.82, maths: 0.702, code: 0.872, extraction: 0.797 });
  assert.deepEqual(accuracies({ model: "gpt-4o-mini" }, { model: "unknown" }), [undefined, undefined]);
});

test("does not mix published accuracies of an ability with stated ones", () => {
  const [one, two] = accuracies({ model: "gpt-4o-mini", accuracy: { maths: 0.5 } }, { model: "gpt-4o" });
  assert.equal(typeof one === "object" && one.maths, 0.5);
  assert.equal(typeof two === "object" && two.maths, undefined);
  assert.equal(typeof two === "object" && two.code, 0.902);
  assert.deepEqual(accuracies({ model: "gpt-4o", accuracy: 0.5 }, { model: "gpt-4o-mini" }), [0.5, undefined]);
});
