import { useEffect, useRef, useState } from "preact/hooks";
import type { GetQuotasResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { count, roundAmount } from "../format.ts";
import { useLoad } from "../load.ts";
import { Empty } from "../parts/empty.tsx";
import { usage } from "../rpc.ts";
import { currentWorkspace } from "../session/session.ts";
import { AnswerView } from "./answer-view.tsx";
import { changed, type Draft, EMPTY, missing } from "./draft.ts";
import type { Rates } from "./estimate.ts";
import { InputEditor } from "./input-editor.tsx";
import { keepRun } from "./kept-runs.ts";
import { Options } from "./options.tsx";
import { type Run, run as start } from "./run.ts";
import { schemaProblem } from "./schema-check.ts";
import { SnippetPanel } from "./snippet-panel.tsx";

/** Draft and sums of this visit. Kept in memory while the console is open, for one workspace only, and never stored. */
let kept: { workspaceId: string; draft: Draft; runs: number; tokens: number; credits: number } | undefined;

function keptFor(workspaceId: string) {
  if (kept?.workspaceId !== workspaceId) kept = { workspaceId, draft: EMPTY, runs: 0, tokens: 0, credits: 0 };
  return kept;
}

/** The draft, the request that runs or has run, and what changes them. */
function usePlayground() {
  const visit = keptFor(currentWorkspace());
  const [draft, setDraft] = useState(visit.draft);
  const [shown, setShown] = useState<{ run: Run; draft: Draft }>();
  const [message, setMessage] = useState("");
  const [now, setNow] = useState(0);
  const running = useRef<AbortController | undefined>(undefined);
  const isRunning = shown?.run.state === "running";

  useEffect(() => {
    visit.draft = draft;
  }, [visit, draft]);
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, [isRunning]);

  const change = (changes: Partial<Draft>) => {
    setMessage("");
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
    setNow(performance.now());
    const ended = await start(draft, (run) => setShown({ run, draft }), abort.signal);
    keepRun(ended);
    const { end } = ended;
    visit.runs += 1;
    visit.tokens += (end?.usage?.inputTokens ?? 0) + (end?.usage?.outputTokens ?? 0);
    visit.credits += end?.usage?.credits ?? 0;
    setNow(performance.now());
  };
  return { visit, draft, change, shown, now, message, isRunning, send, stop: () => running.current?.abort() };
}

/** Sends requests from the page. */
export function PlaygroundPage() {
  const { visit, draft, change, shown, now, message, isRunning, send, stop } = usePlayground();
  const rates = useLoad(async (signal) => ratesOf(await usage.getQuotas({}, { signal })), "rates");
  const submit = (event: Event) => {
    event.preventDefault();
    void send();
  };
  const sendByKey = (event: KeyboardEvent & { currentTarget: HTMLFormElement }) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };

  return (
    <>
      <h1 tabIndex={-1}>Playground</h1>
      <p class="lead">
        Requests from here are charged to the workspace, under its key “console”. What you write stays in this tab.
      </p>
      <div class="playground">
        <form onSubmit={submit} onKeyDown={sendByKey} aria-label="Request">
          <InputEditor draft={draft} change={change} />
          <Options draft={draft} change={change} />
          <div class="buttons start">
            {/* Different keys, so that a click cannot hit a button while it changes from Stop to Ask. */}
            {isRunning ? (
              <button key="stop" type="button" class="primary" onClick={stop}>
                Stop
              </button>
            ) : (
              <button key="ask" type="submit" class="primary" title="Ctrl+Enter">
                Ask
              </button>
            )}
            <span role="status" class="status">
              {message}
            </span>
          </div>
        </form>
        <section aria-label="Answer" class="result">
          {shown ? (
            <AnswerView title="Answer" run={shown.run} draft={shown.draft} now={now} rates={rates.data ?? undefined} />
          ) : (
            <Empty title="The answer appears here.">
              <p>With its cost so far and a timeline of its steps.</p>
            </Empty>
          )}
          {visit.runs > 0 && (
            <p class="visit soft">
              This visit: {count(visit.runs)} {visit.runs === 1 ? "request" : "requests"}
              {`, ${count(visit.tokens)} tokens, ${roundAmount(visit.credits)} credits`}
            </p>
          )}
        </section>
      </div>
      <SnippetPanel draft={draft} />
    </>
  );
}

/** The rates; null if the service does not publish them. */
function ratesOf(answer: GetQuotasResponse): Rates | null {
  return answer.rates ?? null;
}
