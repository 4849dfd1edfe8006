import type { Shape } from "../contract/terms.ts";
import type { Prompt, PromptTurn } from "../models/port/model.ts";

/** One turn of the conversation. */
export type Turn = PromptTurn;

/** The caller's prompt as a conversation. */
export interface Conversation {
  /** Instructions of the caller, in order: the `system` field, then messages with the role `system`. */
  system: string[];
  turns: Turn[];
  /** Whether the model must continue the last turn, which is the assistant's. */
  continues: boolean;
}

const SERVICE =
  "You answer requests that reach you through an API. Give the answer itself, without a preamble about the request. " +
  "If you cannot know something, say so instead of inventing it.";

const EXTRACT =
  "Answer with one JSON object and nothing else: no prose, no code fence. " +
  "Its members are the ones that the request asks for.";

const STRICT =
  "Answer with one JSON object and nothing else: no prose, no code fence. " +
  "It must be valid against the JSON Schema of the response format.";

const CONTINUE =
  "Continue your last message exactly from where it stops. Do not repeat any of it, do not begin anew, do not comment.";

/**
 * Builds the prompt for a model, in the form that every vendor accepts:
 * - All system texts come first, because some vendors reject them between turns.
 * - There are no empty turns, because some vendors reject them.
 * - Turns alternate and the first is the user's, because Bedrock and the chat templates of many open models require it.
 * - The last turn is the user's, because newer models reject a prefilled answer.
 */
export function buildPrompt(conversation: Conversation, shape: Shape): Prompt {
  const instructions = [SERVICE];
  if (shape === "extract") instructions.push(EXTRACT);
  if (shape === "json_schema") instructions.push(STRICT);
  const system = conversation.system.filter((text) => text !== "");
  const turns = alternating(conversation.turns.filter(({ text, images }) => text !== "" || images?.length));
  if (turns.length === 0) turns.push({ role: "user", text: system.pop() ?? "" });
  if (turns[0]?.role === "assistant") turns.unshift({ role: "user", text: "Begin." });
  if (turns.at(-1)?.role === "assistant")
    turns.push({ role: "user", text: conversation.continues ? CONTINUE : "Go on." });
  // A copy, because an array that has grown keeps room for 16 more.
  return { system: [...instructions, ...system].join("\n\n"), turns: [...turns] };
}

/** Joins consecutive turns of the same role. */
function alternating(turns: readonly Turn[]): Turn[] {
  const joined: Turn[] = [];
  for (const turn of turns) {
    const last = joined.at(-1);
    if (last?.role !== turn.role) joined.push(turn);
    else {
      const text = [last.text, turn.text].filter((text) => text !== "").join("\n\n");
      const images = [...(last.images ?? []), ...(turn.images ?? [])];
      joined[joined.length - 1] = { role: turn.role, text, ...(images.length > 0 ? { images } : {}) };
    }
  }
  return joined;
}

/** Adds an invalid answer and its errors, and asks the model to correct it. */
export function buildReask(prompt: Prompt, answer: string, errors: readonly string[]): Prompt {
  const list = errors.map((error) => `- ${error}`).join("\n");
  const correction = `That is not valid:\n${list}\nSend the corrected JSON object, whole, and nothing else.`;
  const turns: Turn[] = [
    { role: "assistant", text: answer === "" ? "(empty)" : answer },
    { role: "user", text: correction },
  ];
  return { ...prompt, turns: [...prompt.turns, ...turns] };
}
