import type { DifficultyRater, DifficultyRating } from "../engine/difficulty/difficulty.ts";
import { type LevelThresholds, levelOf } from "../engine/difficulty/level.ts";
import type { Conversation } from "../engine/prompt.ts";
import type { Effort, Level } from "../terms.ts";

export interface Choice {
  level: Level;
  judgement: DifficultyRating;
  /** Why this level, in words. */
  reasons: string[];
}

/** Chooses the level that is applied: the one that the caller asks for, or with `auto` the one that the judge thinks the request needs. */
export function chooseLevel(
  judge: DifficultyRater,
  thresholds: LevelThresholds,
  effort: Effort,
  asked: Conversation,
): Choice {
  const judgement = judge.judge(judgedText(asked));
  const level = levelOf(effort, judgement, thresholds);
  return {
    level,
    judgement,
    reasons: effort === "auto" ? judgement.reasons : [`the request asks for effort ${effort}`],
  };
}

/** The caller's instructions and what the caller said last, without what others wrote. */
function judgedText({ system, turns }: Conversation): string {
  const last = turns.findLastIndex(({ role }) => role === "user");
  const before = turns.findLastIndex(({ role }, i) => role === "assistant" && i < last);
  const said = turns.slice(before + 1, last + 1).map(({ text }) => text);
  return [...system, ...said].filter((part) => part !== "").join("\n\n");
}
