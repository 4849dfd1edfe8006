import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { encodeScorer } from "../src/engine/difficulty/scorer.ts";
import { readRecorded } from "./data.ts";
import { curveOf, folds, heldOut, type Routed, routed } from "./difficulty.ts";
import { calibrate, fitScorer, type Sample } from "./difficulty-fit.ts";

const USAGE = "npm run train:difficulty -- [--weak NAME] [--strong NAME] [--out FILE] DATA.jsonl …";

/**
 * Trains the difficulty scorer on recorded files, calibrates it on held-out prompts, prints the calibration curve and
 * writes the weights.
 */
function train(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { weak: { type: "string" }, strong: { type: "string" }, out: { type: "string" } },
  });
  if (positionals.length === 0) throw new Error(`Name at least one file of recorded answers: ${USAGE}`);
  const sets: Routed[] = [];
  for (const path of positionals) {
    const file = readRecorded(path);
    const set = routed(file, { weak: values.weak === undefined ? [] : [values.weak], strong: values.strong });
    if (typeof set === "string") throw new Error(set);
    console.log(`${file.name}: ${set.rows.length} rows, ${set.weak} → ${set.strong}`);
    sets.push(set);
  }
  const samples: Sample[] = sets.flatMap((set) => set.samples);
  // Prompts that two files share stay in one fold.
  const prompts = sets.flatMap(({ rows }) => rows.map(({ prompt }) => prompt.slice(0, 80)));
  const { scores } = heldOut(samples, folds(prompts, 5, 1));
  const outcomes = samples.map(({ gain }, at) => ({ score: scores[at] ?? 0, gained: gain > 0 }));
  const scorer = calibrate(fitScorer(samples), outcomes);
  const path = values.out ?? fileURLToPath(new URL("../src/engine/difficulty/weights.bin", import.meta.url));
  const bytes = encodeScorer(scorer);
  writeFileSync(path, bytes);
  report(
    sets,
    outcomes.map(({ score }) => 1 / (1 + Math.exp(-(scorer.slope * score + scorer.offset)))),
  );
  console.log(`Wrote ${path} (${bytes.length} bytes).`);
}

/** Prints the gain in each tenth of difficulty. The thresholds of the levels are chosen from this table. */
function report(sets: readonly Routed[], difficulties: readonly number[]): void {
  let from = 0;
  for (const set of sets) {
    const part = difficulties.slice(from, from + set.rows.length);
    console.log(`APGR, held out: ${set.weak} → ${set.strong} ${curveOf(set, part)?.apgr.toFixed(3) ?? "no gain"}`);
    from += set.rows.length;
  }
  const gains = sets.flatMap(({ samples }) => samples.map(({ gain }) => gain));
  const order = difficulties
    .map((difficulty, at) => ({ difficulty, gain: gains[at] ?? 0 }))
    .toSorted((a, b) => a.difficulty - b.difficulty);
  const total = gains.reduce((sum, gain) => sum + gain, 0);
  console.log("| tenth of prompts | difficulty | strong is better | share of all gain |\n| --- | --- | --- | --- |");
  for (let tenth = 0; tenth < 10; tenth++) {
    const slice = order.slice(Math.round((order.length * tenth) / 10), Math.round((order.length * (tenth + 1)) / 10));
    const sum = slice.reduce((gain, one) => gain + one.gain, 0);
    const better = slice.filter(({ gain }) => gain > 0).length / (slice.length || 1);
    const range = `${slice[0]?.difficulty.toFixed(3) ?? "–"} to ${slice.at(-1)?.difficulty.toFixed(3) ?? "–"}`;
    console.log(`| ${tenth + 1} | ${range} | ${better.toFixed(3)} | ${total > 0 ? (sum / total).toFixed(3) : "–"} |`);
  }
}

try {
  train();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
