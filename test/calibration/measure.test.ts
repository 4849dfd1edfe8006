import assert from "node:assert/strict";
import { test } from "vitest";
import { isRight, wilson } from "../../src/calibration/measure.ts";
import { generateQuestions } from "../../src/calibration/questions.ts";

test("generates distinct questions, the same in every run, whose answers count as right", () => {
  const questions = generateQuestions(40);
  assert.deepEqual(questions, generateQuestions(40));
  assert.equal(questions.length, 150);
  assert.equal(new Set(questions.map(({ prompt }) => prompt)).size, 150);
  for (const question of questions) {
    assert.ok(isRight(question, question.answer), question.id);
    assert.ok(!isRight(question, "I do not know."), question.id);
  }
});

test("reads an answer in other words, but code exactly", () => {
  const base = { id: "q", ability: "maths" as const, prompt: "" };
  assert.ok(isRight({ ...base, answer: "1200", exact: false }, "So the answer is **1,200**."));
  assert.ok(isRight({ ...base, answer: "'aB'", exact: true }, 'It prints:\n\n```python\n"aB"\n```'));
  assert.ok(!isRight({ ...base, answer: "'aB'", exact: true }, "'ab'"));
});

test("gives Wilson's interval", () => {
  assert.deepEqual(wilson(20, 25), { accuracy: 0.76, low: 0.6087, high: 0.9114, right: 20, questions: 25 });
  const { accuracy, high } = wilson(25, 25);
  assert.ok(accuracy > 0.92 && accuracy < 0.94 && high === 1);
});
