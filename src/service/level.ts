import type { DifficultyRater, DifficultyRating } from "../engine/difficulty/difficulty.ts";
import { type LevelThresholds, levelOf } from "../engine/difficulty/level.ts";
import type { Conversation } from "../engine/prompt.ts";
import type { Effort, Level } from "../terms.ts";

export interface Choice {
  level: Level;
  rating: DifficultyRating;
  /** Why this level, as phrases for the trace. */
  readonly reasons: string[];
}

/** Chooses the level of a request: the effort that the caller names, or with `auto` the level of the difficulty. */
export function chooseLevel(
  rater: DifficultyRater,
  thresholds: LevelThresholds,
  effort: Effort,
  conversation: Conversation,
): Choice {
  const rating = rater.rate(ratedText(conversation));
  const level = levelOf(effort, rating, thresholds);
  return {
    level,
    rating,
    get reasons() {
      return effort === "auto" ? rating.reasons : [`the request asks for effort ${effort}`];
    },
  };
}

/** The caller's instructions and last turn, without files, search results and earlier answers. */
function ratedText({ system, turns }: Conversation): string {
  const last = turns.findLastIndex(({ role }) => role === "user");
  const before = turns.findLastIndex(({ role }, i) => role === "assistant" && i < last);
  const texts = turns.slice(before + 1, last + 1).map(({ text }) => text);
  return [...system, ...texts].filter((part) => part !== "").join("\n\n");
}
