import assert from "node:assert/strict";
import { test } from "vitest";
import { createCatalogue } from "../../src/models/catalogue.ts";
import { rank } from "../../src/models/order.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { publishedOf } from "../../src/models/published.ts";

test("finds a model by its name or a dated version of it", () => {
  assert.equal(publishedOf("gpt-4o-mini-2024-07-18")?.knowledge, 0.82);
  assert.equal(publishedOf("gpt-4o-2024-08-06")?.maths, 0.759);
  assert.equal(publishedOf("gpt-4o-2024-05-13")?.maths, 0.766);
  assert.equal(publishedOf("claude-3-5-sonnet-20240620")?.maths, 0.711);
  assert.ok(publishedOf("llama3.1:70b"));
  assert.deepEqual(publishedOf("meta-llama/Meta-Llama-3.1-70B-Instruct"), publishedOf("llama3.1:70b"));
});

test("knows nothing of another product whose name begins like a known one", () => {
  for (const name of ["gemini-1.5-pro-exp-0827", "gemini-1.5-pro-002", "gpt-4o-audio-preview", "o3-pro", "gpt-4o-1"])
    assert.equal(publishedOf(name), undefined, name);
  assert.equal(publishedOf("somebody/fine-tune"), undefined);
});

/** The accuracies for maths by which a catalogue orders its models, best first. */
function accuracies(...entries: Array<Pick<ModelEntry, "model"> & Partial<ModelEntry>>) {
  const catalogue = createCatalogue(
    entries.map((entry, at): ModelEntry => {
      const shared = { name: `m${at}`, vendor: "openai" as const, tier: "fast" as const, apiKey: "k" };
      return { ...shared, images: false, jsonSchema: true, ...entry };
    }),
    { connectMs: 1, firstTokenMs: 1, betweenChunksMs: 1 },
  );
  return rank(catalogue.members, "maths").members.map(({ accuracy }) => accuracy);
}

test("uses published accuracies only if those of all models are known", () => {
  assert.deepEqual(accuracies({ model: "gpt-4o-mini" }, { model: "gpt-4o" }), [0.759, 0.702]);
  assert.deepEqual(accuracies({ model: "gpt-4o-mini" }, { model: "unknown" }), [undefined, undefined]);
});

test("does not mix published accuracies of an ability with stated ones", () => {
  const one = { model: "gpt-4o-mini", accuracy: { maths: 0.5 } };
  assert.deepEqual(accuracies(one, { model: "gpt-4o" }), [0.5, undefined]);
  assert.deepEqual(accuracies({ ...one, accuracy: { code: 0.5 } }, { model: "gpt-4o" }), [0.759, 0.702]);
  assert.deepEqual(accuracies({ model: "gpt-4o", accuracy: 0.5 }, { model: "gpt-4o-mini" }), [0.5, undefined]);
});
