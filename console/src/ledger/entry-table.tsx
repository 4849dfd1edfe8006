import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { type LedgerEntry, LedgerEntryKind, LedgerEntryKindSchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { columnAmount, timeText } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Link } from "../parts/link.tsx";
import { pathOf } from "../route.ts";
import { can } from "../session/session.ts";

/** A table of movements. @param holds whether to show the column of held credit */
export function EntryTable({ entries, holds }: { entries: readonly LedgerEntry[]; holds: boolean }) {
  const columns: Column<LedgerEntry>[] = [
    { title: "Time", cell: ({ at }) => timeText(at) },
    { title: "Movement", cell: ({ kind }) => <Kind of={kind} /> },
    { title: "Reference", cell: (entry) => <Reference of={entry} /> },
    change<LedgerEntry>("Granted", ({ granted }) => granted),
    change<LedgerEntry>("Purchased", ({ purchased }) => purchased),
    ...(holds ? [change<LedgerEntry>("Held", ({ held }) => held)] : []),
    { title: "Balance", figure: true, cell: ({ balance }) => (balance ? columnAmount(balance, 6) : "–") },
  ];
  return <DataTable label="Movements" columns={columns} rows={entries} keyOf={({ id }) => id} />;
}

/** The reference of a booking, or the request, which leads to its run. */
function Reference({ of: { kind, reference } }: { of: LedgerEntry }) {
  const text = <code class="soft">{reference}</code>;
  const isShown = kind === LedgerEntryKind.SETTLEMENT && can(ActivityService.method.getRun);
  return isShown ? <Link to={pathOf(`runs/${reference}`)}>{text}</Link> : text;
}

function Kind({ of: kind }: { of: LedgerEntryKind }) {
  const isIncome = kind === LedgerEntryKind.GRANT || kind === LedgerEntryKind.PURCHASE;
  return <span class={isIncome ? "tag good" : "tag"}>{wordOf(LedgerEntryKindSchema, kind)}</span>;
}

/** A column of changes of credit. */
export function change<T>(title: string, of: (entry: T) => string): Column<T> {
  return {
    title,
    figure: true,
    class: (entry) => (Number(of(entry)) > 0 ? "plus" : ""),
    cell: (entry) => {
      const value = Number(of(entry));
      return value === 0 ? <span class="soft">–</span> : `${value > 0 ? "+" : ""}${columnAmount(value, 6)}`;
    },
  };
}
