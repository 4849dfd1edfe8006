import type { Level, Tier } from "../../contract/terms.ts";
import type { Model, Reasoning } from "../../models/port/model.ts";

/** What a model is asked for within a plan. */
type Task = "answer" | "draft" | "escalate" | "judge" | "analysis" | "write";

const DEPTHS: readonly Reasoning[] = ["none", "low", "medium", "high"];
/**
 * Time that a call must have left for a depth, in milliseconds: for its thinking and the answer after it. Estimates,
 * from the room in tokens that a call gets for thinking (`ROOM` in vendor.ts): an eighth of it used, at 100 tokens a
 * second; for `high` a quarter.
 */
const NEEDED_MS: Readonly<Record<Reasoning, number>> = { none: 0, low: 0, medium: 15_000, high: 60_000 };

/**
 * How deeply a model may think: little where its answer is checked by others or the level is low, some where a strong
 * model is asked, deep at level high for the model that decides or writes.
 */
export function depthOf(task: Task, level: Level, tier: Tier): Reasoning {
  if (task === "analysis" || (task !== "escalate" && level === "low")) return "low";
  if (task === "draft") return level === "high" ? "medium" : "low";
  if (level === "high") return "high";
  return tier === "strong" ? "medium" : "low";
}

/** The depth, or the deepest one below it for which the time is enough. */
export function affordable(depth: Reasoning, leftMs: number): Reasoning {
  const wanted = DEPTHS.indexOf(depth);
  return DEPTHS.findLast((each, at) => at <= wanted && leftMs >= NEEDED_MS[each]) ?? "none";
}

/** A model that thinks at most that deeply, and less when the call has little time left. */
export function withDepth(model: Model, depth: Reasoning): Model {
  return {
    name: model.name,
    ask: (call) => model.ask({ ...call, reasoning: affordable(depth, call.endsAt - performance.now()) }),
  };
}
