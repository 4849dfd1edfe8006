import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { readRecorded } from "./data.ts";
import { type Routed, routed } from "./difficulty.ts";
import { fitWeights } from "./difficulty-fit.ts";
import { mean } from "./score.ts";

const USAGE = "npm run train:difficulty -- [--out FILE] DATA.jsonl …";

/** Fits the weights of difficulty on recorded files, writes them, and prints how often models fail by difficulty. */
function train(): void {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: "string" } } });
  if (positionals.length === 0) throw new Error(`Name at least one file of recorded answers: ${USAGE}`);
  const sets = positionals.map((path) => {
    const set = routed(readRecorded(path), { weak: [], strong: undefined });
    if (typeof set === "string") throw new Error(set);
    return set;
  });
  const weights = fitWeights(sets.flatMap(({ samples }) => samples));
  const path = values.out ?? fileURLToPath(new URL("../src/engine/difficulty/weights.json", import.meta.url));
  writeFileSync(path, `${JSON.stringify(weights, null, 2)}\n`);
  const rater = createDifficultyRater(weights);
  report(sets, (prompt) => rater.rate(prompt).difficulty);
  console.log(`Wrote ${path}.`);
}

/** Prints the mean rate of failure in each tenth of difficulty, over all files with equal weight. */
function report(sets: readonly Routed[], rate: (prompt: string) => number): void {
  const rated = sets.flatMap(({ rows, samples }) =>
    rows.map(({ prompt }, at) => ({
      difficulty: rate(prompt),
      failure: samples[at]?.failure ?? 0,
      weight: 1 / rows.length,
    })),
  );
  const order = rated.toSorted((a, b) => a.difficulty - b.difficulty);
  const tenth = sets.length / 10;
  console.log("| tenth of prompts | difficulty | rate of failure |\n| --- | --- | --- |");
  let passed = 0;
  const tenths = Map.groupBy(order, ({ weight }) => {
    passed += weight;
    return Math.min(10, Math.ceil((passed - weight / 2) / tenth));
  });
  for (const [number, some] of tenths) {
    const range = `${some[0]?.difficulty.toFixed(2)} to ${some.at(-1)?.difficulty.toFixed(2)}`;
    const failure =
      some.reduce((sum, one) => sum + one.failure * one.weight, 0) /
      (mean(some.map((one) => one.weight)) * some.length);
    console.log(`| ${number} | ${range} | ${failure.toFixed(2)} |`);
  }
}

try {
  train();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
