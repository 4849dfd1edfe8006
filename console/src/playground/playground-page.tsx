import { useEffect, useRef, useState } from "preact/hooks";
import type { GetQuotasResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { count, roundAmount } from "../format.ts";
import { useLoad } from "../load.ts";
import { Empty } from "../parts/empty.tsx";
import { usage } from "../rpc.ts";
import { currentWorkspace } from "../session/session.ts";
import { Answer } from "./answer-view.tsx";
import { type Draft, EMPTY, missing } from "./draft.ts";
import type { Rates } from "./estimate.ts";
import { InputEditor } from "./input-editor.tsx";
import { Options } from "./options.tsx";
import { type Run, run as start } from "./run.ts";
import { refusalOf } from "./schema-check.ts";
import { SnippetPanel } from "./snippet-panel.tsx";

/** What is written stays while the console is open, over other pages and a new sign-in; never for another workspace, never on disk. */
let kept: { workspaceId: string; draft: Draft; runs: number; tokens: number; credits: number } | undefined;

function keptFor(workspaceId: string) {
  if (kept?.workspaceId !== workspaceId) kept = { workspaceId, draft: EMPTY, runs: 0, tokens: 0, credits: 0 };
  return kept;
}

/** Tries the service from the page. */
export function PlaygroundPage() {
  const visit = keptFor(currentWorkspace());
  const [draft, setDraft] = useState(visit.draft);
  const [shown, setShown] = useState<{ run: Run; draft: Draft }>();
  const [said, setSaid] = useState("");
  const [now, setNow] = useState(0);
  const running = useRef<AbortController | undefined>(undefined);
  const rates = useLoad(async (signal) => ratesOf(await usage.getQuotas({}, { signal })), "rates");
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
    setSaid("");
    setDraft((before) => ({ ...before, ...changes }));
  };
  const send = async () => {
    const reason =
      missing(draft) ||
      (draft.mode === "json_schema" && refusalOf(draft.schema) ? "The schema is not acceptable yet." : "");
    setSaid(reason);
    if (reason || isRunning) return;
    const leaving = new AbortController();
    running.current = leaving;
    setNow(performance.now());
    const { end } = await start(draft, (run) => setShown({ run, draft }), leaving.signal);
    visit.runs += 1;
    visit.tokens += (end?.usage?.inputTokens ?? 0) + (end?.usage?.outputTokens ?? 0);
    visit.credits += end?.usage?.credits ?? 0;
    setNow(performance.now());
  };
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
            {/* Keys keep them apart: a button that turned into the other one under a click would send again. */}
            {isRunning ? (
              <button key="stop" type="button" class="primary" onClick={() => running.current?.abort()}>
                Stop
              </button>
            ) : (
              <button key="ask" type="submit" class="primary" title="Ctrl+Enter">
                Ask
              </button>
            )}
            <span role="status" class="said">
              {said}
            </span>
          </div>
        </form>
        <section aria-label="Answer" class="result">
          {shown ? (
            <Answer run={shown.run} draft={shown.draft} now={now} rates={rates.data ?? undefined} />
          ) : (
            <Empty title="The answer comes here.">
              <p>With what it costs while it comes, and a timeline of how it came about.</p>
            </Empty>
          )}
          {visit.runs > 0 && (
            <p class="visit soft">
              This visit: {count(visit.runs)} {visit.runs === 1 ? "request" : "requests"}, {count(visit.tokens)} tokens,{" "}
              {roundAmount(visit.credits)} credits
            </p>
          )}
        </section>
      </div>
      <SnippetPanel draft={draft} />
    </>
  );
}

/** The rates, where the service tells them. */
function ratesOf(answer: GetQuotasResponse): Rates | null {
  return answer.rates ?? null;
}
