import type { Draft } from "./draft.ts";

/** Credits per million tokens. */
export interface Rates {
  readonly input: number;
  readonly output: number;
}

/** Average characters per token of English text. The service counts exactly and returns the count at the end. */
const CHARACTERS = 4;

/** Estimates the cost of an answer so far. @param text the answer so far */
export function runningCost(draft: Draft, text: string, rates: Rates | undefined) {
  const output = tokens(text);
  const words = draft.input === "prompt" ? draft.prompt : draft.messages.map(({ content }) => content).join("\n");
  const input = tokens(words) + tokens(draft.system) + (draft.mode === "json_schema" ? tokens(draft.schema) : 0);
  const credits = rates && (input * rates.input + output * rates.output) / 1_000_000;
  return { output, credits };
}

function tokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS);
}
