import type { Config } from "../config/config.ts";
import type { Effort, Level } from "../contract/terms.ts";
import type { Context, DifficultyRater, DifficultyRating, Kind } from "../engine/difficulty/difficulty.ts";
import { EARLIER } from "../engine/difficulty/follow-up.ts";
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
  thresholds: Config["levels"],
  { effort, conversation, trace }: Pick<CheckedRequest, "effort" | "conversation" | "trace">,
): Choice {
  const { text, context } = asked(conversation);
  const rating = rater.rate(text, context);
  const level = levelOf(effort, rating, thresholds);
  const explain = () => (effort === "auto" ? rating.explain() : [`the request asks for effort ${effort}`]);
  return {
    level,
    kind: rating.kind,
    difficulty: level === "medium" ? rating.difficulty : undefined,
    reasons: trace ? explain() : [],
  };
}

/** The level of a request: the caller's effort, or for `auto` that of the difficulty, which is read only then. */
export function levelOf(
  effort: Effort,
  rating: Pick<DifficultyRating, "difficulty">,
  { medium, high }: Config["levels"],
): Level {
  if (effort !== "auto") return effort;
  const { difficulty } = rating;
  return difficulty >= high ? "high" : difficulty >= medium ? "medium" : "low";
}

/** What the user says after the last answer and, for a follow-up, before it; without files and search results. */
function asked({ system, messages }: Conversation): { text: string; context: Context } {
  const texts: string[] = [];
  let isAfterAnswer = true;
  for (let at = messages.length - 1; at >= 0 && texts.length <= EARLIER; at--) {
    const message = messages[at];
    // The results of tools belong to the task of the user's last message.
    if (message?.role !== "user" || message.results) isAfterAnswer = true;
    else if (isAfterAnswer) [texts[texts.length], isAfterAnswer] = [message.text, false];
    else texts[texts.length - 1] = `${message.text}\n\n${texts.at(-1)}`;
  }
  const [text = "", ...earlier] = texts;
  // Without a text of the user, the instructions are the task.
  if (text.trim() === "") return { text: system.join("\n\n"), context: { earlier: [], instructions: [] } };
  return { text, context: { earlier, instructions: system } };
}
