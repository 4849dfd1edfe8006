import { RefreshCw, ScrollText } from "lucide";
import { ActorKind, type AuditEntry } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { timeText, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { activity } from "../rpc.ts";
import { changesOf } from "./changes.ts";
import { saveAudit } from "./save-audit.ts";

const ACTORS: Partial<Record<ActorKind, string>> = {
  [ActorKind.OPERATOR]: "Operator",
  [ActorKind.OWNER]: "Owner",
  [ActorKind.SERVICE]: "Service",
};

/** Lists who changed what in the workspace. */
export function AuditPage() {
  const pager = usePager("");
  const page = useLoad(
    (signal) => activity.listAudit({ pageSize: 50, pageToken: pager.token }, { signal }),
    pager.token,
  );
  return (
    <>
      <PageHead title="Audit log" lead="Who changed what in this workspace: keys, limits, credit, tokens.">
        <ExportButton label="Export as CSV" run={saveAudit} />
        <button type="button" aria-label="Refresh" title="Refresh" onClick={page.reload}>
          <Icon of={RefreshCw} />
        </button>
      </PageHead>
      <Card flush>
        <Pending of={page} what="changes" skeleton={<Skeleton tall="20rem" />}>
          {({ entries, nextPageToken }) => (
            <>
              {entries.length === 0 ? (
                <Empty title="There are no changes yet." icon={ScrollText} />
              ) : (
                <DataTable label="Changes" columns={COLUMNS} rows={entries} keyOf={({ id }) => id} />
              )}
              <PagerButtons pager={pager} next={nextPageToken} />
            </>
          )}
        </Pending>
      </Card>
    </>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  { title: "Time", cell: ({ at }) => timeText(at) },
  { title: "Action", cell: ({ action }) => <strong>{words(action)}</strong> },
  {
    title: "By",
    cell: ({ actorKind, actorId }) => (
      <span>
        {ACTORS[actorKind] ?? "Unknown"} <code class="soft">{actorId}</code>
      </span>
    ),
  },
  { title: "Details", class: "name details-of", cell: ({ details }) => <Changes details={details} /> },
];

function Changes({ details }: { details: string }) {
  return (
    <ul class="changes">
      {changesOf(details).map(([name, value]) => (
        <li key={name}>
          <span class="soft">{words(name)}</span> {value}
        </li>
      ))}
    </ul>
  );
}
