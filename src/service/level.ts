import { Effort } from "../../gen/chorus/v1/generation_pb.js";
import type { Tier } from "../config.ts";
import type { Checked } from "./check.ts";

export type Level = "low" | "medium" | "high";

/** Input tokens up to which `auto` takes a text request for a simple one. */
const SIMPLE_TOKENS = 400;

/** Chooses the level that is applied and the tier that answers first. `auto` keeps short text requests on the fast tier. */
export function chooseLevel({ effort, shape }: Checked, inputTokens: number): { level: Level; tier: Tier } {
  if (effort === Effort.LOW) return { level: "low", tier: "fast" };
  if (effort === Effort.HIGH) return { level: "high", tier: "strong" };
  if (effort === Effort.MEDIUM) return { level: "medium", tier: "strong" };
  return shape === "text" && inputTokens <= SIMPLE_TOKENS
    ? { level: "low", tier: "fast" }
    : { level: "medium", tier: "strong" };
}
