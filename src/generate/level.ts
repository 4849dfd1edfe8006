import type { Level } from "../contract/terms.ts";
import type { DifficultyRater, Kind } from "../engine/difficulty/difficulty.ts";
import { type LevelThresholds, levelOf } from "../engine/difficulty/level.ts";
import type { Conversation } from "../engine/prompt.ts";
import type { CheckedRequest } from "./validate-request.ts";

export interface Choice {
  level: Level;
  kind: Kind;
  /** See `DifficultyRating`. Undefined at the levels at which no plan depends on it. */
  difficulty: number | undefined;
  /** Why this level, as phrases for the trace; empty without a trace. */
  reasons: string[];
}

/** Chooses the level of a request: the effort that the caller names, or with `auto` the level of the difficulty. */
export function chooseLevel(
  rater: DifficultyRater,
  thresholds: LevelThresholds,
  { effort, conversation, trace }: Pick<CheckedRequest, "effort" | "conversation" | "trace">,
): Choice {
  const rating = rater.rate(ratedText(conversation));
  const level = levelOf(effort, rating, thresholds);
  const explain = () => (effort === "auto" ? rating.explain() : [`the request asks for effort ${effort}`]);
  return {
    level,
    kind: rating.kind,
    difficulty: level === "medium" ? rating.difficulty : undefined,
    reasons: trace ? explain() : [],
  };
}

/** The caller's instructions and last message, without files, search results and earlier answers. */
function ratedText({ system, messages }: Conversation): string {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const before = messages.findLastIndex(({ role }, i) => role === "assistant" && i < last);
  const texts = messages.slice(before + 1, last + 1).map(({ text }) => text);
  return [...system, ...texts].filter((part) => part !== "").join("\n\n");
}
