import { createDifficultyRater, type DifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { encodeScorer } from "../src/engine/difficulty/scorer.ts";
import { folds, heldOut, type Routed } from "./difficulty.ts";
import { calibrate, fitScorer } from "./difficulty-fit.ts";

/** A rater that is trained on these files only, in the way of `npm run train:difficulty`. */
export function raterOf(sets: readonly Routed[]): DifficultyRater {
  const samples = sets.flatMap((set) => set.samples);
  const prompts = sets.flatMap(({ rows }) => rows.map(({ prompt }) => prompt.slice(0, 80)));
  const { scores } = heldOut(samples, folds(prompts, 5, 1));
  const outcomes = samples.map(({ gain }, at) => ({ score: scores[at] ?? 0, gained: gain > 0 }));
  return createDifficultyRater(encodeScorer(calibrate(fitScorer(samples), outcomes)));
}
