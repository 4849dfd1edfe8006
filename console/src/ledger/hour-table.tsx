import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { LedgerHour } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { count, timeText } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Link } from "../parts/link.tsx";
import { pathOf } from "../route.ts";
import { change } from "./entry-table.tsx";

const HOUR_MS = 3_600_000;

const COLUMNS: readonly Column<LedgerHour>[] = [
  {
    title: "Hour",
    cell: ({ startTime }) => <Link to={settlementsOf(startTime)}>{timeText(startTime).slice(0, 16)}</Link>,
  },
  { title: "Settlements", figure: true, cell: ({ settlements }) => count(settlements) },
  change("Granted", ({ granted }) => granted),
  change("Purchased", ({ purchased }) => purchased),
];

/** A table of hours, each with a link to its settlements. */
export function HourTable({ hours }: { hours: readonly LedgerHour[] }) {
  return <DataTable label="Hours" columns={COLUMNS} rows={hours} keyOf={({ startTime }) => timeText(startTime)} />;
}

function settlementsOf(start: LedgerHour["startTime"]): string {
  const ms = start ? timestampDate(start).getTime() : 0;
  const [from, to] = [ms, ms + HOUR_MS].map((at) => new Date(at).toISOString());
  return pathOf("ledger", { show: "settlement", from, to });
}
