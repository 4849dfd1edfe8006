import { useEffect, useState } from "preact/hooks";
import { changed, type Draft, type DraftFile, type EffortName, EMPTY, missing } from "./draft.ts";
import { type Run, run as start } from "./run.ts";
import { schemaProblem } from "./schema-check.ts";
import { keptVisit, type Past, type Shown, type Visit } from "./visit.ts";

/** Most past requests of a visit. */
const MOST_PAST = 20;

const SIDES: [title: string, effort: EffortName][] = [
  ["Effort low", "low"],
  ["Effort high", "high"],
];

export type Playground = ReturnType<typeof usePlayground>;

/** The draft, the runs on the page, those of the past, and what changes them. */
export function usePlayground() {
  const visit = keptVisit();
  const [, draw] = useState(0);
  const [message, setMessage] = useState("");
  const { draft = EMPTY, shown, compares } = visit;
  const isRunning = shown.some(({ run }) => run.state === "running");
  const now = useClock(isRunning);

  useEffect(() => {
    visit.changed = () => draw((before) => before + 1);
    visit.changed();
    return () => {
      visit.changed = () => undefined;
    };
  }, [visit]);

  const update = (changes: Partial<Visit>) => {
    Object.assign(visit, changes);
    visit.changed();
  };
  // The draft may have changed since the page was drawn: a file is read for a while.
  const latestDraft = () => visit.draft ?? EMPTY;
  const change = (changes: Partial<Draft>) => {
    setMessage("");
    const latest = latestDraft();
    // An answer of another kind does not belong to the request any more.
    const isOther = changes.mode !== undefined && changes.mode !== latest.mode && !isRunning;
    update({ draft: changed(latest, changes), ...(isOther ? { shown: [] } : {}) });
  };
  const attach = (files: readonly DraftFile[]) => change({ files: [...latestDraft().files, ...files] });
  const send = async () => {
    const reason =
      missing(draft) ||
      (draft.mode === "json_schema" && schemaProblem(draft.schema) ? "Correct the schema first." : "");
    setMessage(reason);
    if (!reason && !isRunning) await sendDraft(visit, draft, update);
  };
  const open = (past: Past) => {
    setMessage("");
    update({ draft: past.draft, compares: past.compares, shown: past.shown });
  };
  return {
    ...{ visit, draft, change, attach, shown, compares, now, message, isRunning, send, open },
    setCompares: (next: boolean) => update({ compares: next }),
    stop: () => visit.running?.abort(),
  };
}

/** Sends a draft, and adds it to the past when all its answers have ended. */
async function sendDraft(visit: Visit, draft: Draft, update: (changes: Partial<Visit>) => void): Promise<void> {
  const { compares } = visit;
  const [at, running] = [new Date(), new AbortController()];
  const sides = compares
    ? SIDES.map(([title, effort]) => ({ title, draft: { ...draft, effort } }))
    : [{ title: "Answer", draft }];
  update({ running, shown: [] });
  const show = showing(sides, (shown) => update({ shown }));
  await Promise.all(
    sides.map(async (side) => {
      const run = await start(side.draft, (changed) => show(side, changed), running.signal);
      visit.runs += 1;
      visit.tokens += (run.end?.usage?.inputTokens ?? 0) + (run.end?.usage?.outputTokens ?? 0);
      visit.credits += run.end?.usage?.credits ?? 0;
    }),
  );
  const past = [{ at, draft, compares, shown: visit.shown }, ...visit.past].slice(0, MOST_PAST);
  update({ running: undefined, past });
}

/** Shortest wait between two draws of text that arrives, and that for each character of it, which is formatted anew. */
const DRAW_MS = { least: 50, ofCharacter: 1 / 500 };

/**
 * Shows the runs of one request. The beginning and the end of a run are drawn at once, what arrives between them some
 * times a second: to draw each piece of a long answer would take longer than the answer.
 */
function showing<S extends Omit<Shown, "run">>(sides: readonly S[], draw: (shown: Shown[]) => void) {
  const runs = new Map<S, Run>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const drawNow = () => {
    clearTimeout(timer);
    timer = undefined;
    draw(sides.flatMap((side) => (runs.has(side) ? [{ ...side, run: runs.get(side) as Run }] : [])));
  };
  return (side: S, run: Run) => {
    const isFirst = !runs.has(side);
    runs.set(side, run);
    const length = [...runs.values()].reduce((sum, { text }) => sum + text.length, 0);
    if (isFirst || run.state !== "running") drawNow();
    else timer ??= setTimeout(drawNow, DRAW_MS.least + length * DRAW_MS.ofCharacter);
  };
}

/** The time, as `performance.now()`, renewed while something runs. */
function useClock(isRunning: boolean): number {
  const [now, setNow] = useState(0);
  useEffect(() => {
    const tick = () => setNow(performance.now());
    tick();
    if (!isRunning) return undefined;
    const timer = setInterval(tick, 100);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}
