import { AnswerShapeSchema, type Generation, Outcome } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema, FinishReasonSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { columnAmount, count, duration, timeText, words } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { endOf } from "./find.ts";

interface Props {
  generations: readonly Generation[];
  /** Identifier of the request whose drawer is open; empty for none. */
  opened: string;
  open: (generation: Generation) => void;
}

/** A table of requests. */
export function GenerationTable({ generations, opened, open }: Props) {
  const columns: Column<Generation>[] = [
    {
      title: "Time",
      cell: (row) => (
        <button type="button" class="link row" onClick={() => open(row)}>
          {timeText(row.at)}
        </button>
      ),
    },
    { title: "Key", class: "name", cell: ({ keyName, keyId }) => keyName || keyId },
    { title: "Level", class: "half", cell: ({ level }) => wordOf(EffortSchema, level) },
    { title: "Answer", class: "half", cell: ({ shape }) => words(wordOf(AnswerShapeSchema, shape)) },
    { title: "Input", class: "half", figure: true, cell: ({ inputTokens }) => count(inputTokens) },
    { title: "Output", class: "half", figure: true, cell: ({ outputTokens }) => count(outputTokens) },
    { title: "Credits", class: "half", figure: true, cell: ({ credits }) => columnAmount(credits, 6) },
    { title: "Latency", class: "half", figure: true, cell: ({ latencyMs }) => duration(latencyMs) },
    { title: "Outcome", cell: (row) => <End row={row} /> },
  ];
  return (
    <DataTable
      label="Requests"
      columns={columns}
      rows={generations}
      keyOf={({ id }) => id}
      open={open}
      isOpen={({ id }) => id === opened}
    />
  );
}

/** How a request ended, as a tag. */
export function End({ row }: { row: Generation }) {
  const end = endOf(row);
  if (row.outcome === Outcome.OK)
    return <span class="tag good">{wordOf(FinishReasonSchema, row.finishReason) || end}</span>;
  const isFailure = row.outcome === Outcome.FAILED;
  return <span class={`tag ${isFailure ? "bad" : "warn"}`}>{isFailure ? end : words(end)}</span>;
}
