import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import fc from "fast-check";
import { test } from "vitest";
import { demands } from "../../../src/engine/difficulty/depth.ts";
import { createDifficultyRater, loadDifficultyRater } from "../../../src/engine/difficulty/difficulty.ts";
import { levelOf } from "../../../src/engine/difficulty/level.ts";
import { decodeScorer, encodeScorer, featureScore, features, score } from "../../../src/engine/difficulty/scorer.ts";
import type { Level } from "../../../src/terms.ts";

const FILE = new URL("../../../src/engine/difficulty/weights.bin", import.meta.url);
const rater = loadDifficultyRater();

test("rates any text from 0 to 1 with at most four reasons, and always the same", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
      const rating = rater.rate(text);
      assert.ok(rating.difficulty >= 0 && rating.difficulty <= 1, String(rating.difficulty));
      const reasons = rating.explain();
      assert.ok(reasons.length >= 1 && reasons.length <= 4);
      const again = rater.rate(text);
      assert.deepEqual([again.difficulty, again.kind, again.explain()], [rating.difficulty, rating.kind, reasons]);
    }),
  );
});

test("reads the same n-grams in an ASCII prompt as in one with other letters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary-ascii", maxLength: 200 }), (text) => {
      const mixed = new Set(features(`${text} ж`).ngrams);
      const missing = features(text).ngrams.filter((bucket) => !mixed.has(bucket));
      assert.deepEqual([...missing], []);
    }),
  );
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

test("rates a programming task above small talk", () => {
  const hard = rater.rate(
    "Implement a function in C++ to find the median of two sorted arrays in O(log n) time. Explain why it is right.",
  );
  assert.ok(hard.difficulty > rater.rate("Hello, how was your weekend?").difficulty);
});

test("rates wording that is absent from the training data by the simple features", () => {
  const scorer = decodeScorer(readFileSync(FILE));
  const unseen = features("ꙮ".repeat(3).concat(" жщю ѳѵ ѣѫ ӂӝ ӟӡ ӣӥ ӧө ӫӭ ӯӱ ӳӵ ӷӹ ԁԃ ԅԇ ԉԋ"));
  const { score: blended, trust } = score(scorer, unseen);
  assert.ok(trust < 0.5, `trust ${trust}`);
  assert.ok(trust > 0 || blended === featureScore(scorer, unseen));
  assert.ok(
    score(scorer, features("Which of the following is not true of the answer?\nA. It is\nB. It is not")).trust > 0.5,
  );
});

const LEVELS: Array<[text: string, level: Level]> = [
  ["hi", "low"],
  ["What is 17 * 23 + 4?", "low"],
  ["What is the capital of France?", "low"],
  ["Write a short email to my landlord about the heating.", "low"],
  ["Prove that the square root of 2 is irrational.", "medium"],
  ["Beweise, dass es unendlich viele Primzahlen gibt.", "medium"],
  ["Write a detailed essay comparing Kant's and Mill's moral philosophies, critically evaluating both.", "medium"],
  ["Extract the names and dates from this letter: Dear Anna, on 3 May we meet Bob.", "medium"],
  ["Prove that there are infinitely many primes and compare three proofs in depth", "high"],
  ["Design a rate limiter for ten million users and discuss the trade-offs of three algorithms in depth.", "high"],
];

for (const [text, level] of LEVELS)
  test(`auto level of ${JSON.stringify(text.slice(0, 40))}: ${level}`, () =>
    assert.equal(levelOf("auto", rater.rate(text), { medium: 0.165, high: 0.212 }), level));

test("raises the difficulty for demands for depth, with a reason, except in a closed question", () => {
  const [short, deep] = ["Explain the moon.", "Explain the moon in depth, and compare it with Io."].map((text) =>
    rater.rate(text),
  );
  assert.ok((deep?.difficulty ?? 0) > (short?.difficulty ?? 1));
  assert.ok(deep?.explain().includes("depth is asked for (harder)"));
  const options = "\nA. One\nB. Two\nC. Three";
  const closed = rater.rate(`Which proof did Euclid give in detail? Compare.${options}`);
  assert.ok(closed.explain().every((reason) => !reason.includes("asked for")));
});

test("does not count an instruction to think step by step as a demand", () => {
  assert.deepEqual(demands("Add 2 and 3. Let's think step by step."), []);
  assert.equal(demands("Show me step by step how to add 2 and 3.").length, 1);
});

test("decodes what it encodes, and explains how to replace invalid weights", () => {
  const bytes = readFileSync(FILE);
  assert.deepEqual(Buffer.from(encodeScorer(decodeScorer(bytes))), bytes);
  assert.throws(() => createDifficultyRater(bytes.subarray(1)), /npm run train:difficulty/);
  assert.throws(() => createDifficultyRater(new Uint8Array()), /npm run train:difficulty/);
  assert.ok(statSync(FILE).size <= 300_000);
});

test("uses a named effort as the level, and the thresholds for auto", () => {
  const thresholds = { medium: 0.2, high: 0.4 };
  for (const effort of ["low", "medium", "high"] as const)
    for (const difficulty of [0, 0.3, 1]) assert.equal(levelOf(effort, { difficulty }, thresholds), effort);
  const auto = (difficulty: number) => levelOf("auto", { difficulty }, thresholds);
  assert.deepEqual([0, 0.19, 0.2, 0.39, 0.4, 1].map(auto), ["low", "low", "medium", "medium", "high", "high"]);
});
