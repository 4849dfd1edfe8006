import type { Step } from "../playground/steps.ts";

/** What a step takes over from earlier steps, as places of these. */
export interface Link {
  readonly from: number;
  readonly to: number;
}

/** Outcomes of steps whose results nothing takes over. */
const UNUSED: ReadonlySet<string> = new Set(["failed", "dropped"]);

/** Steps that work at the same time, each on its own. */
const PARALLEL: ReadonlySet<string> = new Set(["draft", "hedge"]);

/**
 * How the results of steps flow: the drafts go into the vote or the analysis, and the step that follows takes over from
 * it. A step that writes from drafts without a vote takes all of them.
 * @param steps in the order in which they began
 */
export function linksOf(steps: readonly Pick<Step, "kind" | "outcome" | "durationMs">[]): Link[] {
  const links: Link[] = [];
  /** Steps whose results have not been taken over. */
  let open: number[] = [];
  for (const [to, { kind, outcome, durationMs }] of steps.entries()) {
    const isNextToOthers = PARALLEL.has(kind);
    const before = isNextToOthers ? open.filter((at) => !PARALLEL.has(steps[at]?.kind ?? "")) : open;
    links.push(...before.map((from) => ({ from, to })));
    // Nothing can take over from a step that still works.
    if (UNUSED.has(outcome) || durationMs === undefined) continue;
    open = isNextToOthers ? [...open.filter((at) => !before.includes(at)), to] : [to];
  }
  return links;
}

/** Lengths of the drawing of a run that goes on, in seconds. Beyond the last, it is as long as the run. */
const SCALES = [2, 5, 10, 20, 30, 60, 120, 300, 600];

/** Length of the drawing of a run that goes on, in milliseconds: it grows seldom, so that the bars grow visibly. */
export function scaleOf(elapsedMs: number): number {
  const seconds = SCALES.find((length) => length * 1_000 >= elapsedMs);
  return seconds === undefined ? elapsedMs : seconds * 1_000;
}

/** How an answer was made, in a few words. */
export function planName(steps: readonly Pick<Step, "kind">[]): string {
  const has = (kind: string) => steps.some((step) => step.kind === kind);
  const drafts = steps.filter(({ kind }) => kind === "draft").length;
  if (drafts === 0) return has("escalate") || has("reask") ? "One model, then another" : "One model";
  if (has("write")) return `${drafts} drafts, written into one answer`;
  if (has("judge")) return `${drafts} drafts, a vote, and a judge`;
  if (has("escalate")) return `${drafts} drafts that do not decide, then another model`;
  return `${drafts} drafts and a vote`;
}
