import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { readRecorded } from "../../eval/data.ts";
import { originOf, repairPart } from "../../eval/repair.ts";

const row = (id: string, answer: string | null) => ({
  id,
  group: "g",
  prompt: "?",
  gold: null,
  models: { one: { answer, score: 1 } },
});
const output = (id: string, text: string) => ({ id, model: "one", output: text });

test("counts unread and wrongly read outputs", () => {
  const outputs = [
    output("a", 'Here it is:\n```json\n{"reasoning": "a "quoted" word", "answer": "$1,234.50",}\n```'),
    output("b", '{"reasoning": "cut off'),
    output("c", '{"answer": 7}'),
    output("d", '{"answer": "20/7"}'),
    output("e", '{"answer": "86 glasses and 42 plates"}'),
    output("f", '{"answer": 1}'),
  ];
  const rows = [row("a", "1234.5"), row("b", "1"), row("c", "8"), row("d", "2.85714"), row("e", "42"), row("f", null)];
  assert.deepEqual(repairPart(outputs, rows), { outputs: 6, unread: 1 / 6, compared: 4, wrong: 1 });
});

test("compares nothing without recorded answers, and returns undefined without outputs", () => {
  assert.deepEqual(repairPart([output("a", "{}")], []), { outputs: 1, unread: 0, compared: 0, wrong: 0 });
  assert.equal(repairPart([], []), undefined);
});

test("takes recorded answers from the other files or from the neighbouring file", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "eval-"));
  t.onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "x.jsonl"), JSON.stringify(row("a", "1")));
  for (const name of ["x-raw-outputs.jsonl", "y-raw-outputs.jsonl"]) {
    writeFileSync(join(folder, name), JSON.stringify(output("a", '{"answer": 1}')));
  }
  const raw = readRecorded(join(folder, "x-raw-outputs.jsonl"));
  assert.equal(originOf(raw, [raw]).length, 1);
  const alone = readRecorded(join(folder, "y-raw-outputs.jsonl"));
  assert.equal(originOf(alone, [alone]).length, 0);
  assert.equal(originOf(alone, [alone, readRecorded(join(folder, "x.jsonl"))]).length, 1);
});
