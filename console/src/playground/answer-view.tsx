import { useId, useState } from "preact/hooks";
import { directionOf } from "../direction.ts";
import { describe } from "../failure.ts";
import { count, duration, roundAmount } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Link } from "../parts/link.tsx";
import { Note } from "../parts/note.tsx";
import { Rating } from "../parts/rating.tsx";
import { Segments } from "../parts/segments.tsx";
import { pathOf } from "../route.ts";
import { PlanView, planText } from "../runs/plan-view.tsx";
import type { Draft } from "./draft.ts";
import { Drafts } from "./drafts.tsx";
import { type Rates, runningCost } from "./estimate.ts";
import { JsonTree } from "./json-tree.tsx";
import { Markdown } from "./markdown.tsx";
import type { End, Run } from "./run.ts";

interface Props {
  title: string;
  run: Run;
  /** The request. */
  draft: Draft;
  /** Current time, as `performance.now()`. */
  now: number;
  /** Undefined if the service does not publish them. */
  rates: Rates | undefined;
}

/** The answer while it is generated, its cost, and how it is made. */
export function AnswerView({ title, run, draft, now, rates }: Props) {
  const { state, text, end, error, steps, startedAt, endedAt = now } = run;
  const elapsed = Math.max(0, endedAt - startedAt);
  if (state === "failed") {
    // Without a code the failure is not from the service, which may have charged what it had streamed.
    const isFree = describe(error).code !== "";
    return (
      <Card title={title} class="answer-card">
        <FailureNote error={error} title={isFree ? "Failed, not charged" : "The connection was lost"} />
        {!isFree && text && <Answer text={text} end={undefined} />}
      </Card>
    );
  }
  return (
    <Card title={title} class="answer-card" actions={<State run={run} />}>
      {text && <Answer text={text} end={end} />}
      <dl class="meters">
        {end?.usage ? <Charged end={end} /> : <Running draft={draft} text={text} rates={rates} />}
        <div>
          <dt>Time</dt>
          <dd>{duration(elapsed)}</dd>
        </div>
      </dl>
      {end?.structuredError && <Note tone="warn">No object: {end.structuredError}</Note>}
      {end?.notices.map(({ code, message }) => (
        <Note key={`${code} ${message}`}>
          <p>
            <code>{code}</code> {message}
          </p>
        </Note>
      ))}
      {steps.length > 0 && (
        <section class="plan-part">
          <h3>The plan</h3>
          {end?.trace && <p>{planText(steps, end.trace)}</p>}
          <PlanView steps={steps} trace={end?.trace} running={state === "running"} elapsed={elapsed} />
          {end && <Drafts id={end.id} steps={steps} />}
        </section>
      )}
      {end?.requestId && (
        <p class="soft small">
          Request {end.requestId} · <Link to={pathOf(`runs/${end.id}`)}>How it was answered</Link>
        </p>
      )}
    </Card>
  );
}

function State({ run: { state, text, end } }: { run: Run }) {
  const [tone, words] = {
    running: ["", text ? "Answering…" : "Waiting for the answer…"],
    done: end?.finish === "length" ? ["warn", "Ended at the length limit"] : ["good", "Done"],
    stopped: ["warn", "Stopped. The text that was streamed is charged."],
    failed: ["bad", "Failed"],
  }[state];
  return (
    <span class={`tag ${tone}`} role="status">
      {words}
    </span>
  );
}

const VIEWS = [
  ["formatted", "Formatted"],
  ["text", "As text"],
] as const;

function Answer({ text, end }: { text: string; end: End | undefined }) {
  // Without an object, the text is all that there is.
  const structured = end?.structuredError ? undefined : end?.structured;
  const [view, setView] = useState<(typeof VIEWS)[number][0]>("formatted");
  return (
    <div class="answer">
      {view === "text" && <pre dir={directionOf(text)}>{text}</pre>}
      {view === "formatted" && (structured === undefined ? <Markdown text={text} /> : <JsonTree json={structured} />)}
      <div class="toolbar">
        <Segments legend="View" name={useId()} value={view} options={VIEWS} change={setView} />
        <Copy text={text} label="Copy the answer" />
        {end && <Rating id={end.id} />}
      </div>
    </div>
  );
}

function Charged({ end: { usage } }: { end: End }) {
  if (!usage) return null;
  return (
    <>
      <div>
        <dt>Input</dt>
        <dd>
          {count(usage.inputTokens)} tokens
          {usage.cachedTokens > 0 && <span class="soft"> ({count(usage.cachedTokens)} cached)</span>}
        </dd>
      </div>
      <div>
        <dt>Output</dt>
        <dd>{count(usage.outputTokens)} tokens</dd>
      </div>
      <div>
        <dt>Charged</dt>
        <dd>{roundAmount(usage.credits)} credits</dd>
      </div>
    </>
  );
}

function Running({ draft, text, rates }: Pick<Props, "draft" | "rates"> & { text: string }) {
  const { output, credits } = runningCost(draft, text, rates);
  return (
    <>
      <div>
        <dt>Output</dt>
        <dd>about {count(output)} tokens</dd>
      </div>
      {credits !== undefined && (
        <div>
          <dt>So far</dt>
          <dd>about {roundAmount(credits)} credits</dd>
        </div>
      )}
    </>
  );
}
