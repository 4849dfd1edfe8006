import { createDifficultyRater, type DifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import type { Routed } from "./difficulty.ts";
import { fitWeights } from "./difficulty-fit.ts";

/** A rater whose weights are fitted on these files only, in the way of `npm run train:difficulty`. */
export function raterOf(sets: readonly Routed[]): DifficultyRater {
  return createDifficultyRater(fitWeights(sets.flatMap(({ samples }) => samples)));
}
