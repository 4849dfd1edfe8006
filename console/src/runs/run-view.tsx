import { useEffect, useState } from "preact/hooks";
import { AnswerShapeSchema, Outcome, type Run, RunTextState } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { End } from "../activity/generation-table.tsx";
import { amount, count, duration, timeText, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { Detail } from "../parts/details.tsx";
import { Link } from "../parts/link.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pending } from "../parts/pending.tsx";
import { stepOf } from "../playground/steps.ts";
import { rename } from "../route.ts";
import { CallTable } from "./call-table.tsx";
import { PlanView, planText } from "./plan-view.tsx";
import { Repeat } from "./repeat.tsx";
import { RunTextCard } from "./run-text.tsx";
import { useElapsed } from "./use-elapsed.ts";

interface Props {
  /** Identifier of the generation, or of the request, which is replaced in the address. */
  id: string;
  load: (signal: AbortSignal) => Promise<Run>;
  /** The page that lists requests. */
  back: { address: string; name: string };
  isOperator?: boolean;
}

/** Interval at which the run of a request that runs is loaded again, in milliseconds. */
const LIVE_MS = 500;

/** How one request was answered, or is being answered. */
export function RunView({ id, load, back, isOperator = false }: Props) {
  const [isRunning, setIsRunning] = useState(false);
  const run = useLoad(load, id, isRunning ? LIVE_MS : 0);
  const found = run.data?.generation?.id;
  useEffect(() => setIsRunning(run.data?.running ?? false), [run.data]);
  useEffect(() => {
    if (found && id.startsWith("req_")) rename(id, found);
  }, [found]);
  return (
    <>
      <PageHead title="Run" lead="How one request was answered.">
        <Link to={back.address} class="button">
          {back.name}
        </Link>
        <Copy text={location.href} label="Copy the link" />
      </PageHead>
      <Pending of={run} what="the run">
        {(data) => <Found run={data} isOperator={isOperator} />}
      </Pending>
    </>
  );
}

function Found({ run, isOperator }: { run: Run; isOperator: boolean }) {
  const { generation, notices, calls, text, intelligenceTrace } = run;
  if (!generation) return null;
  return (
    <>
      <Summary run={run} />
      {notices.map(({ code, message }) => (
        <Note key={code}>
          <p>
            <code>{code}</code> {message}
          </p>
        </Note>
      ))}
      <Plan run={run} />
      {text !== RunTextState.UNSPECIFIED && (
        <RunTextCard
          key={generation.id}
          id={generation.id}
          state={text}
          steps={intelligenceTrace?.steps.map(stepOf) ?? []}
          isOperator={isOperator}
        />
      )}
      {calls.length > 0 && <CallTable run={run} />}
      <Repeat generation={generation} />
    </>
  );
}

function Summary({ run: { generation: row, running, costUsd } }: { run: Run }) {
  if (!row) return null;
  const isFree = !running && row.outcome !== Outcome.OK && Number(row.credits) === 0;
  return (
    <Card title="The request">
      <dl class="details wide">
        <Detail name="Outcome">
          {running ? <span class="tag">running</span> : <End row={row} />}{" "}
          {isFree && <span class="soft">not charged</span>}
        </Detail>
        <Detail name="Time">{timeText(row.at)} UTC</Detail>
        {!running && <Detail name="Latency">{duration(row.latencyMs)}</Detail>}
        <Detail name="Charged">{running ? "at its end" : `${amount(row.credits)} credits`}</Detail>
        {costUsd !== undefined && <Detail name="Cost of its calls">${costUsd}</Detail>}
        <Detail name="Input tokens">
          {count(row.inputTokens)}
          {row.cachedTokens > 0n && <span class="soft"> ({count(row.cachedTokens)} cached)</span>}
        </Detail>
        {!running && <Detail name="Output tokens">{count(row.outputTokens)}</Detail>}
        <Detail name="Answer">
          {words(wordOf(AnswerShapeSchema, row.shape))}
          {row.streamed && ", streamed"}
        </Detail>
        <Detail name="Key">{row.keyName || row.keyId}</Detail>
        {row.user !== "" && <Detail name="User">{row.user}</Detail>}
        {Object.entries(row.tags).map(([name, value]) => (
          <Detail key={name} name={`Tag ${name}`}>
            {value}
          </Detail>
        ))}
        <Detail name="Generation" copy={row.id}>
          <code>{row.id}</code>
        </Detail>
        <Detail name="Request" copy={row.requestId}>
          <code>{row.requestId}</code>
        </Detail>
      </dl>
    </Card>
  );
}

function Plan({ run }: { run: Run }) {
  const { generation, running, intelligenceTrace: trace, calls } = run;
  const elapsed = useElapsed(running, generation?.latencyMs ?? 0, run);
  if (!trace || !generation) {
    return (
      <Card title="The plan">
        <p class="help">
          How this request was answered is not kept, or not any more. Runs are deleted after some days, sooner than the
          requests in Activity. A workspace keeps only so many on one day, and the operator can switch them off.
        </p>
      </Card>
    );
  }
  const steps = trace.steps.map(stepOf);
  const level = wordOf(EffortSchema, trace.intelligenceLevel);
  const modelsOf = (key: string) =>
    [...new Set(calls.filter(({ step, model }) => `${step}` === key && model).map(({ model }) => model))].join(", ");
  return (
    <Card
      title="The plan"
      text={running ? `At level ${level}, for ${duration(elapsed)} so far` : planText(steps, trace)}
    >
      <PlanView steps={steps} trace={trace} running={running} elapsed={elapsed} modelsOf={modelsOf} />
    </Card>
  );
}
