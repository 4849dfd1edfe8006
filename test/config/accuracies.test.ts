import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "vitest";
import { envToConfig } from "../../src/config/config.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "chorus-accuracies-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Accuracies by model of a catalogue with two models and the measured file. */
function read(accuracy: unknown, measured?: unknown) {
  const model = { vendor: "openai-compatible", model: "m", base_url: "http://127.0.0.1:1", tier: "fast" };
  const models = [
    { name: "a", ...model, ...(accuracy === undefined ? {} : { accuracy }) },
    { name: "b", ...model },
  ];
  writeFileSync(join(folder, "models.json"), JSON.stringify({ models, accuracies: "measured.json" }));
  if (measured !== undefined) writeFileSync(join(folder, "measured.json"), JSON.stringify(measured));
  return envToConfig({ CHORUS_MODELS: join(folder, "models.json") }).models.map(({ accuracy }) => accuracy);
}

test("reads accuracies as one number or by ability", () => {
  assert.deepEqual(read(0.5), [0.5, undefined]);
  assert.deepEqual(read({ maths: 0.5, code: 1 }), [{ maths: 0.5, code: 1 }, undefined]);
  assert.throws(() => read({ maths: 2 }), /models\[0\]\.accuracy\.maths must be a number from 0 to 1/);
  assert.throws(() => read({ poetry: 1 }), /unknown member "poetry".*knowledge, maths/);
  assert.throws(() => read("high"), /accuracy must be a number from 0 to 1, or an object with knowledge/);
});

test("adds measured accuracies where a model states none", () => {
  const measured = {
    models: { a: { maths: { accuracy: 0.9 }, code: { accuracy: 0.8 } }, b: { maths: { accuracy: 0.7 } } },
  };
  assert.deepEqual(read({ maths: 0.5 }, measured), [{ maths: 0.5, code: 0.8 }, { maths: 0.7 }]);
  assert.deepEqual(read(0.4, measured), [0.4, { maths: 0.7 }]);
  assert.throws(() => read(undefined, { models: { a: { maths: {} } } }), /measured\.json.*a\.maths must be a number/);
});

test("takes a file with measured accuracies that does not exist yet, and refuses one that cannot be read", () => {
  assert.deepEqual(read(undefined), [undefined, undefined]);
  mkdirSync(join(folder, "measured.json"));
  assert.throws(() => read(undefined), {
    name: "ConfigError",
    message: /measured\.json, which .*models\.json.* names as "accuracies", cannot be read \(EISDIR\)/,
  });
});
