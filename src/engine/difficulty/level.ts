import type { Effort, Level } from "../../contract/terms.ts";
import type { DifficultyRating } from "./difficulty.ts";

/** The lowest difficulties at which `auto` selects a level, 0 to 1; `medium` is at most `high`. */
export interface LevelThresholds {
  medium: number;
  high: number;
}

/** The level of a request: the caller's effort, or for `auto` that of the difficulty, which is read only then. */
export function levelOf(
  effort: Effort,
  rating: Pick<DifficultyRating, "difficulty">,
  thresholds: LevelThresholds,
): Level {
  if (effort !== "auto") return effort;
  const { difficulty } = rating;
  if (difficulty >= thresholds.high) return "high";
  return difficulty >= thresholds.medium ? "medium" : "low";
}
