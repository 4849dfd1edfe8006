import type { Effort, Level } from "../../terms.ts";
import type { DifficultyRating } from "./difficulty.ts";

/** Difficulties from which `auto` takes a level, 0 to 1; `medium` is not above `high`. */
export interface LevelThresholds {
  medium: number;
  high: number;
}

/** The level for a request: the caller's effort where one is named; for `auto`, by the judged difficulty. */
export function levelOf(
  effort: Effort,
  { difficulty }: Pick<DifficultyRating, "difficulty">,
  thresholds: LevelThresholds,
): Level {
  if (effort !== "auto") return effort;
  if (difficulty >= thresholds.high) return "high";
  return difficulty >= thresholds.medium ? "medium" : "low";
}
