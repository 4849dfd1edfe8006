import type { Run } from "./run.ts";

/** Most runs to keep. */
const MOST = 50;

/** The last runs of the playground in this tab, by request. They are never stored. */
const kept = new Map<string, Run>();

/** Keeps a run that has ended, for its row on the page Activity. */
export function keepRun(run: Run): void {
  if (run.end) kept.set(run.end.requestId, run);
  const [oldest] = kept.keys();
  if (kept.size > MOST && oldest !== undefined) kept.delete(oldest);
}

/** A run of this tab; undefined if it is not kept. */
export function keptRun(requestId: string): Run | undefined {
  return kept.get(requestId);
}
