import { count, roundAmount } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { type Draft, textOf } from "./draft.ts";
import type { Past, Visit } from "./visit.ts";

const MODES: Readonly<Record<Draft["mode"], string>> = {
  text: "Text",
  extract: "Extracted JSON",
  json_schema: "Strict JSON",
};

/** The requests of this visit. @param open shows one with its answers again; undefined while another one runs */
export function History({ visit, open }: { visit: Visit; open: ((past: Past) => void) | undefined }) {
  const { runs, tokens, credits, past } = visit;
  const columns: Column<Past>[] = [
    {
      title: "Prompt",
      class: "name",
      cell: (row) => (
        <button type="button" class="link row prompt" disabled={!open} onClick={() => open?.(row)}>
          {textOf(row.draft).slice(0, 200)}
        </button>
      ),
    },
    { title: "Time", class: "half", cell: ({ at }) => at.toISOString().slice(11, 19) },
    { title: "Answer", class: "half", cell: ({ draft }) => MODES[draft.mode] },
    { title: "Effort", class: "half", cell: (row) => (row.compares ? "low, high" : row.draft.effort) },
    { title: "Credits", class: "half", figure: true, cell: (row) => roundAmount(creditsOf(row)) },
    { title: "State", class: "half", cell: ({ shown }) => shown.map(({ run }) => run.state).join(", ") },
  ];
  return (
    <Card
      title="This visit"
      text={
        `${count(runs)} ${runs === 1 ? "request" : "requests"}, ${count(tokens)} tokens, ` +
        `${roundAmount(credits)} credits. It is forgotten when the tab is closed.`
      }
      flush
    >
      <DataTable label="This visit" columns={columns} rows={past} keyOf={({ at }) => at.toISOString()} />
    </Card>
  );
}

function creditsOf({ shown }: Past): number {
  return shown.reduce((sum, { run }) => sum + (run.end?.usage?.credits ?? 0), 0);
}
