import type { Model, Prompt } from "../../models/port/model.ts";
import { untrusted } from "../text/untrusted.ts";
import type { StepOptions } from "./composite.ts";
import type { Draft } from "./draft.ts";
import type { Steps } from "./step.ts";

/** What a model that has the last word on drafts is asked with. */
export interface FromDrafts extends Pick<StepOptions, "streamed" | "roleOf"> {
  /** The model that decides or writes. */
  model: Model;
  drafts: readonly Draft[];
  /** Identifier of the generation, which determines the order of the drafts. */
  generation: string;
  steps: Steps;
}

/** Most characters of one draft in a prompt. A draft of `DRAFT_TOKENS` usually has about as many. */
const MAX_LENGTH = 16_000;

/**
 * Adds an instruction, drafts and notes to the last message of a prompt. The drafts are anonymous, and their order is
 * random but the same for every call of a generation.
 */
export function withDrafts(
  prompt: Prompt,
  instruction: string,
  drafts: readonly Draft[],
  generation: string,
  notes: readonly string[] = [],
): Prompt {
  return withAddition(prompt, [instruction, ...shuffled(drafts, generation), ...notes].join("\n\n"));
}

/**
 * Appends to the last text of the user's message. The text before it stays unchanged, so that vendors can serve it from
 * their cache. It is not added as a separate part, because some OpenAI-compatible servers reject that.
 */
function withAddition(prompt: Prompt, addition: string): Prompt {
  const last = prompt.messages.at(-1);
  if (last?.role !== "user") return { ...prompt, messages: [...prompt.messages, { role: "user", text: addition }] };
  const text = last.text === "" ? addition : `${last.text}\n\n${addition}`;
  return { ...prompt, messages: [...prompt.messages.slice(0, -1), { ...last, text }] };
}

function shuffled(drafts: readonly Draft[], seed: string): string[] {
  const random = randomNumbers(seed);
  const order = drafts.map((draft) => ({ draft, key: random() })).sort((a, b) => a.key - b.key);
  return order.map(({ draft: { text } }, i) =>
    untrusted(`draft ${i + 1}`, text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH).toWellFormed()}…` : text),
  );
}

/** Numbers from 1 to below 2³¹ by the generator of Park and Miller (MINSTD), seeded with FNV-1a. */
function randomNumbers(seed: string): () => number {
  let state = 0x811c9dc5;
  for (let at = 0; at < seed.length; at += 1) state = Math.imul(state ^ seed.charCodeAt(at), 0x01000193);
  state = ((state >>> 0) % 2_147_483_646) + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state;
  };
}
