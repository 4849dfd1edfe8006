import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { envToConfig } from "../../../src/config/config.ts";
import {
  createDifficultyRater,
  type DifficultyRating,
  loadDifficultyRater,
} from "../../../src/engine/difficulty/difficulty.ts";
import { levelOf } from "../../../src/generate/level.ts";
import { codePoint } from "../../helpers/code-point.ts";
import { EXAMPLES } from "./examples.ts";

const rater = loadDifficultyRater();
const { levels } = envToConfig({});

for (const [language, examples] of Map.groupBy(EXAMPLES, (one) => one.language)) {
  test(`finds the level of prompts in ${language}`, () => {
    const given = examples.map(({ prompt }) => levelOf("auto", rater.rate(prompt), levels));
    const wrong = examples.filter(({ level }, at) => given[at] !== level);
    assert.deepEqual(
      wrong.map(({ prompt, level }) => [prompt, level, rater.rate(prompt).difficulty]),
      [],
    );
  });
}

const values = ({ difficulty, kind }: DifficultyRating) => ({ difficulty, kind });

const CASES: ReadonlyArray<[name: string, change: (prompt: string) => string]> = [
  ["in lower case", (prompt) => prompt.toLowerCase()],
  ["in upper case", (prompt) => prompt.toUpperCase()],
];

for (const [name, change] of CASES) {
  test(`rates a prompt ${name} like the prompt`, () => {
    for (const { prompt } of EXAMPLES)
      assert.deepEqual(values(rater.rate(change(prompt))), values(rater.rate(prompt)), prompt);
  });

  test(`rates any text ${name} like the text`, () => {
    const word = fc.constantFrom(...EXAMPLES.flatMap(({ prompt }) => prompt.split(/(?<=[\s.,?])/)));
    fc.assert(
      fc.property(
        fc.array(fc.oneof(word, fc.string({ unit: "grapheme-ascii", maxLength: 9 })), { maxLength: 30 }),
        (words) => {
          const text = words.join(" ");
          assert.deepEqual(values(rater.rate(change(text))), values(rater.rate(text)));
        },
      ),
    );
  });
}

const TEMPLATES: ReadonlyArray<[before: string, after: string]> = [
  ["Please answer the following question:\n", ""],
  ["Please answer the following question: ", "\nAnswer:"],
  ["Q: ", "\nA:"],
  ["Question: ", "\n\nAnswer:"],
  ["### Instruction:\n", "\n\n### Response:"],
  ["You are a helpful assistant.\n\n", ""],
  ["Solve the following problem. ", "\nLet's think step by step."],
  ["Bitte beantworte die folgende Frage: ", "\nAntwort:"],
  ["Frage: ", ""],
  ["Pregunta: ", "\nRespuesta:"],
  ["请回答以下问题：", "\n答案："],
  ["次の質問に答えてください。", "\n回答："],
  ["", "  \n\n"],
];

test("rates a prompt in a template like the prompt", () => {
  fc.assert(
    fc.property(fc.constantFrom(...EXAMPLES), fc.constantFrom(...TEMPLATES), ({ prompt }, [before, after]) => {
      assert.deepEqual(values(rater.rate(before + prompt + after)), values(rater.rate(prompt)));
      assert.deepEqual(values(rater.rate((before + prompt + after).toUpperCase())), values(rater.rate(prompt)));
    }),
    { numRuns: 500 },
  );
});

test("rates any text from 0 to 1 with at most four reasons, and always the same", () => {
  fc.assert(
    fc.property(fc.string({ unit: codePoint, maxLength: 400 }), (text) => {
      const rating = rater.rate(text);
      assert.ok(rating.difficulty >= 0 && rating.difficulty <= 1, String(rating.difficulty));
      const reasons = rating.explain();
      assert.ok(reasons.length >= 1 && reasons.length <= 4);
      const again = rater.rate(text);
      assert.deepEqual([again.difficulty, again.kind, again.explain()], [rating.difficulty, rating.kind, reasons]);
    }),
  );
});

test("keeps a rating when other prompts are rated before it is read", () => {
  const [one, other] = [rater.rate("Prove that 2 is prime."), rater.rate("Hello!")];
  assert.equal(other.kind, "conversation");
  assert.deepEqual(values(one), values(rater.rate("Prove that 2 is prime.")));
});

test("reads the start, the middle and the end of a very long prompt", () => {
  const filler = "lorem ipsum ".repeat(16_000);
  const asks = "\nWrite a Python function that finds the k-th smallest element of two sorted arrays.";
  assert.equal(rater.rate(filler + asks).kind, "code");
  assert.notEqual(rater.rate(filler + asks).difficulty, rater.rate(filler).difficulty);
});

test("never quotes the prompt in a reason", () => {
  const words = "zyxomma quibblewort 4711 flumadiddle";
  for (const reason of rater.rate(`Explain ${words} and calculate ${words}?`).explain())
    assert.doesNotMatch(reason, /zyxomma|quibblewort|4711|flumadiddle/);
});

test("raises the difficulty for demands, with a reason, except in a question with options", () => {
  const [short, deep] = ["Explain the moon.", "Explain the moon in depth, and compare it with Io."].map((text) =>
    rater.rate(text),
  );
  assert.ok((deep?.difficulty ?? 0) > (short?.difficulty ?? 1));
  assert.ok(deep?.explain().includes("more difficult: depth is asked for"), String(deep?.explain()));
  const closed = rater.rate("Which proof did Euclid give in detail? Compare.\nA. One\nB. Two\nC. Three");
  assert.ok(closed.explain().every((reason) => !reason.includes("asked for")));
});

test("does not count an instruction to think step by step as a demand", () => {
  const [plain, steps] = ["Add 2 and 3.", "Add 2 and 3. Let's think step by step."].map((text) => rater.rate(text));
  assert.equal(plain?.difficulty, steps?.difficulty);
});

test("explains how to replace weights of another version", () => {
  assert.throws(() => createDifficultyRater({ features: [], offset: 0 }), /npm run train:difficulty/);
});

test("uses a named effort as the level, and the thresholds for auto", () => {
  const thresholds = { medium: 0.2, high: 0.4 };
  for (const effort of ["low", "medium", "high"] as const)
    for (const difficulty of [0, 0.3, 1]) assert.equal(levelOf(effort, { difficulty }, thresholds), effort);
  const auto = (difficulty: number) => levelOf("auto", { difficulty }, thresholds);
  assert.deepEqual([0, 0.19, 0.2, 0.39, 0.4, 1].map(auto), ["low", "low", "medium", "medium", "high", "high"]);
});
