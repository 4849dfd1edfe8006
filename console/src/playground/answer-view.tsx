import { type JsonNode, parseJson } from "../../../src/json.ts";
import { count, duration, roundAmount } from "../format.ts";
import { Copy } from "../parts/copy.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import type { Draft } from "./draft.ts";
import { type Rates, runningCost } from "./estimate.ts";
import type { End, Run } from "./run.ts";
import { Trace } from "./trace.tsx";

interface Props {
  run: Run;
  /** The request. */
  draft: Draft;
  /** Current time, as `performance.now()`. */
  now: number;
  /** Undefined if the service does not publish them. */
  rates: Rates | undefined;
}

/** The answer while it is generated, its cost and its trace. */
export function AnswerView({ run, draft, now, rates }: Props) {
  const { state, text, end, error, startedAt, endedAt = now } = run;
  const elapsed = endedAt - startedAt;
  return (
    <>
      <p class="state" role="status">
        {state === "running" && (text ? "Answering…" : "Waiting for the answer…")}
        {state === "done" && (end?.finish === "length" ? "Ended at the length limit" : "Done")}
        {state === "stopped" && "Stopped. The text that was streamed is charged."}
        {state === "failed" && "Failed. Nothing is charged."}
      </p>
      {text && <pre class="answer">{end?.structured === undefined ? text : indented(end.structured)}</pre>}
      {state === "failed" && <FailureNote error={error} />}
      <dl class="meters">
        {end?.usage ? <Charged end={end} /> : <Running draft={draft} text={text} rates={rates} />}
        <div>
          <dt>Time</dt>
          <dd>{duration(elapsed)}</dd>
        </div>
      </dl>
      {end?.structuredError && <p class="note warn">No object: {end.structuredError}</p>}
      {end?.notices.map(({ code, message }) => (
        <p key={`${code} ${message}`} class="note">
          <code>{code}</code> {message}
        </p>
      ))}
      <Trace steps={run.steps} trace={end?.trace} elapsed={elapsed} />
      {state === "done" && <Copy text={text} label="Copy the answer" />}
      {end?.requestId && <p class="soft small">Request {end.requestId}</p>}
    </>
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

function Running({ draft, text, rates }: Omit<Props, "run" | "now"> & { text: string }) {
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

/** Indents JSON text. Keeps the spelling of numbers, which JSON.parse would change. */
function indented(json: string): string {
  const write = (node: JsonNode, indent: string): string => {
    if (node.kind === "scalar") return node.text;
    const inner = `${indent}  `;
    const [open, items, close] =
      node.kind === "object"
        ? ["{", node.members.map(([name, value]) => `${JSON.stringify(name)}: ${write(value, inner)}`), "}"]
        : ["[", node.items.map((item) => write(item, inner)), "]"];
    return items.length === 0 ? open + close : `${open}\n${inner}${items.join(`,\n${inner}`)}\n${indent}${close}`;
  };
  return write(parseJson(json), "");
}
