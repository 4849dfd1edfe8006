import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import type { GetNextTierResponse, LimitName, Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { type QuotasResponse, SpendPeriod } from "../../../gen/chorus/v1/generation_pb.js";
import { count, duration } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { type Fill, FillTag, fillOf, Meter } from "../parts/meter.tsx";
import { can } from "../session/session.ts";
import { type LimitRow, limitRows } from "./limit-rows.ts";
import { paceOf } from "./pace.ts";

interface Props {
  workspace: Workspace;
  quotas: QuotasResponse;
  next: GetNextTierResponse;
  /** Called for the spend limit that is to be set or removed. */
  change: (row: LimitRow) => void;
}

/** Every limit with its use and pace, when its window ends, and its value in the next tier. */
export function LimitTable({ workspace, quotas, next: { tier }, change }: Props) {
  const rows = limitRows(quotas);
  const now = quotas.asOf ? timestampDate(quotas.asOf).getTime() : Date.now();
  const columns: Column<LimitRow>[] = [
    {
      title: "Limit",
      class: "name",
      cell: (row) => (
        <Name row={row} rows={rows} isOverridden={row.rate !== 0 && workspace.overriddenLimits.includes(row.rate)} />
      ),
    },
    { title: "Used", class: "use", cell: (row) => <Use row={row} /> },
    { title: "At this pace", cell: (row) => <Pace row={row} now={now} /> },
    { title: "Resets in", figure: true, cell: ({ resetsAt }) => (resetsAt ? untilText(resetsAt, now) : "–") },
    ...(tier
      ? [{ title: `Tier ${tier.name}`, figure: true, cell: (row: LimitRow) => limitOf(tier.limits, row.rate) }]
      : []),
    {
      title: "",
      class: "actions",
      cell: (row) =>
        row.spend !== SpendPeriod.UNSPECIFIED &&
        can(CreditService.method.setSpendLimit) && <Change row={row} change={change} />,
    },
  ];
  return (
    <Card flush>
      <DataTable label="Limits" columns={columns} rows={rows} keyOf={({ name }) => name} />
    </Card>
  );
}

/** The first row of each group has the anchor to which other pages lead. */
function Name({ row, rows, isOverridden }: { row: LimitRow; rows: readonly LimitRow[]; isOverridden: boolean }) {
  const isFirst = rows.find(({ anchor }) => anchor === row.anchor) === row;
  return (
    <span {...(isFirst ? { id: row.anchor } : {})}>
      {row.name} {isOverridden && <span class="tag">set by the operator</span>}
    </span>
  );
}

function Change({ row, change }: { row: LimitRow } & Pick<Props, "change">) {
  const action = row.limit === undefined ? "Set a limit" : "Change";
  return (
    <button type="button" class="quiet small" aria-label={`${action}: ${row.name}`} onClick={() => change(row)}>
      {action}
    </button>
  );
}

function Use({ row: { name, used, limit, writeUsed, writeLimit } }: { row: LimitRow }) {
  if (used === undefined) return <span class="soft">no limit</span>;
  return (
    <div class="limit">
      <p>
        <strong>{writeUsed(used)}</strong>
        <span class="soft">{limit === undefined ? "no limit" : `of ${writeLimit(limit)}`}</span>
        {limit !== undefined && <FillTag fill={fillOf(used, limit)} />}
      </p>
      {limit !== undefined && <Meter used={used} limit={limit} label={name} />}
    </div>
  );
}

/** What a spend limit that is nearly or fully used means for requests. */
const REFUSED: Partial<Record<Fill, string>> = {
  near: "Requests that may cost more than the rest are already refused.",
  full: "Requests that need purchased credit are refused until the reset, unless the limit is raised.",
};

function Pace({ row, now }: { row: LimitRow; now: number }) {
  const { used, limit, spend, resetsAt } = row;
  const pace = resetsAt ? paceOf(row, now, timestampDate(resetsAt).getTime()) : "";
  const refused =
    spend === SpendPeriod.UNSPECIFIED || used === undefined || limit === undefined
      ? undefined
      : REFUSED[fillOf(used, limit)];
  return (
    <div class="pace">
      {pace || "–"}
      {refused && <p class="help">{refused}</p>}
    </div>
  );
}

function untilText(resetsAt: Timestamp, now: number): string {
  return duration(Math.max(1000, timestampDate(resetsAt).getTime() - now));
}

function limitOf(limits: readonly { name: LimitName; value: bigint }[], rate: LimitName): string {
  if (rate === 0) return "–";
  const limit = limits.find(({ name }) => name === rate);
  return limit ? count(limit.value) : "no limit";
}
