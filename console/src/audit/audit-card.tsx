import { ScrollText } from "lucide";
import { ActorKind, type AuditEntry, type ListAuditResponse } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { timeText, words } from "../format.ts";
import type { Loaded } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { type Pager, PagerButtons } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { changesOf } from "./changes.ts";

const ACTORS: Partial<Record<ActorKind, string>> = {
  [ActorKind.OPERATOR]: "Operator",
  [ActorKind.OWNER]: "Owner",
  [ActorKind.SERVICE]: "Service",
  [ActorKind.MEMBER]: "Member",
};

/** A page of the audit log. */
export function AuditCard({ page, pager }: { page: Loaded<ListAuditResponse>; pager: Pager }) {
  return (
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
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  { title: "Time", cell: ({ at }) => timeText(at) },
  { title: "Action", cell: ({ action }) => <strong>{words(action)}</strong> },
  {
    title: "By",
    cell: ({ actorKind, actorId, actorName }) => (
      <span>
        {actorName && <strong>{actorName}, </strong>}
        {ACTORS[actorKind] ?? "Unknown"} <code class="soft">{actorId}</code>
      </span>
    ),
  },
  { title: "Details", class: "name details-of", cell: ({ details }) => <Changes details={details} /> },
];

function Changes({ details }: { details: string }) {
  const changes = changesOf(details);
  if (changes.length === 0) return null;
  return (
    <ul class="changes">
      {changes.map(([name, value]) => (
        <li key={name}>
          <span class="soft">{words(name)}</span> {value}
        </li>
      ))}
    </ul>
  );
}
