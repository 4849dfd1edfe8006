import { useEffect, useRef, useState } from "preact/hooks";
import { currentWorkspace } from "../session/session.ts";
import { changed, type Draft, type EffortName, EMPTY, missing } from "./draft.ts";
import { keepRun } from "./kept-runs.ts";
import { type Run, run as start } from "./run.ts";
import { schemaProblem } from "./schema-check.ts";

/** A run on the page, with its request. */
interface Shown {
  /** Identifies the run among those on the page. */
  readonly title: string;
  readonly run: Run;
  readonly draft: Draft;
}

/** Draft and sums of this visit. Kept in memory while the console is open, for one workspace only, and never stored. */
let kept: { workspaceId: string; draft: Draft; runs: number; tokens: number; credits: number } | undefined;

function keptFor(workspaceId: string) {
  if (kept?.workspaceId !== workspaceId) kept = { workspaceId, draft: EMPTY, runs: 0, tokens: 0, credits: 0 };
  return kept;
}

const SIDES: [title: string, effort: EffortName][] = [
  ["Effort low", "low"],
  ["Effort high", "high"],
];

export type Playground = ReturnType<typeof usePlayground>;

/** The draft, the runs on the page, and what changes them. */
export function usePlayground() {
  const visit = keptFor(currentWorkspace());
  const [draft, setDraft] = useState(visit.draft);
  const [shown, setShown] = useState<readonly Shown[]>([]);
  const [compares, setCompares] = useState(false);
  const [message, setMessage] = useState("");
  const running = useRef<AbortController | undefined>(undefined);
  const isRunning = shown.some(({ run }) => run.state === "running");
  const now = useClock(isRunning);

  useEffect(() => {
    visit.draft = draft;
  }, [visit, draft]);
  useEffect(() => () => running.current?.abort(), []);

  const change = (changes: Partial<Draft>) => {
    setMessage("");
    // An answer of another kind does not belong to the request any more.
    if (changes.mode !== undefined && !isRunning) setShown([]);
    setDraft((before) => changed(before, changes));
  };
  const send = async () => {
    const reason =
      missing(draft) ||
      (draft.mode === "json_schema" && schemaProblem(draft.schema) ? "Correct the schema first." : "");
    setMessage(reason);
    if (reason || isRunning) return;
    const abort = new AbortController();
    running.current = abort;
    const sides = compares
      ? SIDES.map(([title, effort]) => ({ title, draft: { ...draft, effort } }))
      : [{ title: "Answer", draft }];
    setShown([]);
    await Promise.all(
      sides.map(async (side) => {
        const show = (run: Run) =>
          setShown((before) =>
            sides.flatMap((each) =>
              each === side ? [{ ...side, run }] : before.filter(({ title }) => title === each.title),
            ),
          );
        const run = await start(side.draft, show, abort.signal);
        keepRun(run);
        visit.runs += 1;
        visit.tokens += (run.end?.usage?.inputTokens ?? 0) + (run.end?.usage?.outputTokens ?? 0);
        visit.credits += run.end?.usage?.credits ?? 0;
      }),
    );
  };
  const stop = () => running.current?.abort();
  return { visit, draft, change, shown, compares, setCompares, now, message, isRunning, send, stop };
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
