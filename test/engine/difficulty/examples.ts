import { readFileSync } from "node:fs";
import type { Level } from "../../../src/contract/terms.ts";
import type { Kind } from "../../../src/engine/difficulty/difficulty.ts";

/** A prompt with the level and the kind that it has. */
export interface Example {
  /** ISO 639-1. */
  language: string;
  level: Level;
  kind: Kind;
  prompt: string;
}

/** Prompts in eleven languages. The marks were chosen with them, so eval/card.jsonl shares none. */
export const EXAMPLES = readFileSync(new URL("prompts.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line): Example => JSON.parse(line));
