import { CallOutcome, CallOutcomeSchema, type Run, type RunCall } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { StepKindSchema, StepRoleSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { count, duration, words } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";

/** The calls of models. Operators see models, vendors, costs, and why a call failed. */
export function CallTable({ run: { calls, callsLeftOut, intelligenceTrace } }: { run: Run }) {
  const isOperator = calls.some(({ model }) => model !== "");
  const kinds = new Map(intelligenceTrace?.steps.map(({ id, kind }) => [id, words(wordOf(StepKindSchema, kind))]));
  const columns: Column<RunCall>[] = [
    { title: "For", cell: ({ step }) => kinds.get(step) ?? "–" },
    isOperator
      ? { title: "Model", class: "name", cell: ({ model, version }) => (version ? `${model} (${version})` : model) }
      : { title: "Role", cell: ({ role }) => wordOf(StepRoleSchema, role) },
    ...(isOperator ? [{ title: "Vendor", class: "half", cell: ({ vendor }: RunCall) => vendor }] : []),
    { title: "Start", class: "half", figure: true, cell: ({ startedMs }) => duration(startedMs) },
    { title: "Time", class: "half", figure: true, cell: ({ durationMs }) => duration(durationMs) },
    { title: "Input", class: "half", figure: true, cell: ({ inputTokens }) => count(inputTokens) },
    { title: "Output", class: "half", figure: true, cell: ({ outputTokens }) => count(outputTokens) },
    ...(isOperator
      ? [
          {
            title: "Cost",
            class: "half",
            figure: true,
            cell: ({ costUsd }: RunCall) => (costUsd ? `$${costUsd}` : "–"),
          },
        ]
      : []),
    { title: "Outcome", cell: (call) => <CallEnd call={call} /> },
  ];
  const keys = new Map(calls.map((call, at) => [call, `${at}`]));
  return (
    <Card title="Calls of models" flush>
      <DataTable label="Calls of models" columns={columns} rows={calls} keyOf={(call) => keys.get(call) ?? ""} />
      {callsLeftOut > 0 && <p class="help">{count(callsLeftOut)} further calls are not kept.</p>}
    </Card>
  );
}

function CallEnd({ call: { outcome, status, code } }: { call: RunCall }) {
  const word = words(wordOf(CallOutcomeSchema, outcome));
  const why = [status, code].filter(Boolean).join(" ");
  if (outcome === CallOutcome.OK) return <span class="tag good">{word}</span>;
  return (
    <span>
      <span class={`tag ${outcome === CallOutcome.LEFT ? "" : "bad"}`}>{word}</span> {why && <code>{why}</code>}
    </span>
  );
}
