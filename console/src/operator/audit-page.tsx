import { RefreshCw, ScrollText } from "lucide";
import { ActorKind, type AuditEntry } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { changesOf } from "../audit/changes.ts";
import { timeText, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icon.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { useRoute } from "../route.ts";
import { addressOf } from "./operator-shell.tsx";
import { activity } from "./rpc.ts";

const ACTORS: Partial<Record<ActorKind, string>> = {
  [ActorKind.OPERATOR]: "Operator",
  [ActorKind.OWNER]: "Owner",
  [ActorKind.SERVICE]: "Service",
};

/** Lists who changed what: in the workspace that the address names, or in the service as a whole. */
export function AuditPage() {
  const workspace = useRoute().query.get("workspace") ?? "";
  const pager = usePager(workspace);
  const page = useLoad(
    (signal) => activity.listAudit({ workspace, pageSize: 50, pageToken: pager.token }, { signal }),
    `${workspace} ${pager.token}`,
  );
  return (
    <>
      <PageHead
        title="Audit log"
        lead={
          workspace ? `Changes in the workspace ${workspace}.` : "Changes of the service: tokens, sessions, settings."
        }
      >
        {workspace && <Link to={addressOf("audit")}>Whole service</Link>}
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
  {
    title: "Details",
    class: "name details-of",
    cell: ({ details }) => (
      <ul class="changes">
        {changesOf(details).map(([name, value]) => (
          <li key={name}>
            <span class="soft">{words(name)}</span> {value}
          </li>
        ))}
      </ul>
    ),
  },
];
