import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { Progress } from "../../src/calibration/progress.ts";
import type { Question } from "../../src/calibration/questions.ts";

const TAIL = "Give only the number, without a word before or after it, please.";
const QUESTION: Question = {
  id: "line-1",
  ability: "maths",
  prompt: `What is 6 * 7? ${TAIL}`,
  answer: "42",
  exact: false,
};

test("keeps results of the same questions only, also after half a line", ({ onTestFinished }) => {
  const folder = mkdtempSync(join(tmpdir(), "chorus-progress-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "accuracies.json");
  const open = (question: Question) => new Progress(path, [question], ["a", "b"]);
  const left = (question: Question) => ["a", "b"].flatMap((model) => open(question).open(model, [question])).length;
  open(QUESTION).add({ model: "a", question: "line-1", right: true }, QUESTION);
  assert.equal(left(QUESTION), 1);
  for (const changed of [{ prompt: `What is 6 + 7? ${TAIL}` }, { exact: true }, { ability: "code" as const }])
    assert.equal(left({ ...QUESTION, ...changed }), 2, JSON.stringify(changed));
  // A run that was killed while it wrote.
  appendFileSync(`${path}.progress`, '{"model":"b","quest');
  open(QUESTION).add({ model: "b", question: "line-1", right: true }, QUESTION);
  assert.equal(left(QUESTION), 0);
});
