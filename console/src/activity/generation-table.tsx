import { timestampDate } from "@bufbuild/protobuf/wkt";
import { AnswerShapeSchema, type Generation, Outcome } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema, FinishReason, FinishReasonSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { columnAmount, count, duration, words } from "../format.ts";
import { Ago, useAgo } from "../parts/ago.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Rating } from "../parts/rating.tsx";
import { endOf } from "./find.ts";

interface Props {
  generations: readonly Generation[];
  /** Identifier of the request whose drawer is open; empty for none. */
  opened: string;
  open: (generation: Generation) => void;
}

/** A table of requests. */
export function GenerationTable({ generations, opened, open }: Props) {
  useAgo();
  const columns: Column<Generation>[] = [
    {
      title: "Time",
      cell: (row) => (
        <button type="button" class="link row" onClick={() => open(row)}>
          <Ago at={row.at} />
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
    {
      title: "Outcome",
      // Beside the outcome, because a column of its own would not fit on a screen of usual width.
      cell: (row) => (
        <span>
          <End row={row} /> {isRatable(row) && <Rating id={row.id} score={row.score} readFrom={row} />}
        </span>
      ),
    },
  ];
  return (
    <DataTable
      isSticky
      label="Requests"
      columns={columns}
      rows={generations}
      keyOf={({ id }) => id}
      open={open}
      isOpen={({ id }) => id === opened}
    />
  );
}

/** Outcomes of answers are recorded for seven days. */
const RATABLE_MS = 7 * 86_400_000;

/** Whether a request has an answer that can still be rated. */
function isRatable({ outcome, at }: Generation): boolean {
  const isAnswered = outcome === Outcome.OK || outcome === Outcome.CUT_SHORT;
  return isAnswered && at !== undefined && Date.now() - timestampDate(at).getTime() < RATABLE_MS;
}

/** How a request ended, as a tag if it is not the usual end. */
export function End({ row }: { row: Generation }) {
  const end = endOf(row);
  if (row.outcome === Outcome.OK) {
    const isUsual = row.finishReason === FinishReason.STOP;
    return <span class={isUsual ? "soft" : "tag"}>{words(wordOf(FinishReasonSchema, row.finishReason)) || end}</span>;
  }
  const isFailure = row.outcome === Outcome.FAILED;
  return <span class={`tag ${isFailure ? "bad" : "warn"}`}>{isFailure ? end : words(end)}</span>;
}
