import { timeText } from "../format.ts";
import type { LimitRow } from "./limit-rows.ts";

const MS = { minute: 60_000, day: 86_400_000, week: 604_800_000 };

/** Part of a window that must have passed, because the use at its start says little about the rest. */
const EARLY = 0.02;

/**
 * What happens to a limit at the pace of its window so far: when it is reached, or how much of it is used at the reset.
 * Empty where a pace says nothing: without a limit or window, in a minute, and at the start of a window.
 * @param now time of the figures, in milliseconds since 1970
 * @param resetsAt end of the window, likewise
 */
export function paceOf(
  { limit, used, span }: Pick<LimitRow, "limit" | "used" | "span">,
  now: number,
  resetsAt: number,
) {
  if (limit === undefined || used === undefined || span === undefined || span === "minute") return "";
  if (used >= limit) return "reached";
  const start = startOf(span, resetsAt);
  const passed = (now - start) / (resetsAt - start);
  if (!(passed >= EARLY && passed <= 1)) return "";
  const reachedAt = start + ((now - start) * limit) / used;
  if (reachedAt >= resetsAt) return `about ${Math.round((100 * used) / passed / limit)} % at the reset`;
  const [day, time = ""] = timeText(new Date(reachedAt)).slice(0, 16).split(" ");
  return `reached about ${span === "day" ? time : day}`;
}

function startOf(span: "day" | "week" | "month", resetsAt: number): number {
  const end = new Date(resetsAt);
  return span === "month" ? Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - 1) : resetsAt - MS[span];
}
