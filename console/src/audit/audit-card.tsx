import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { ScrollText } from "lucide";
import { ActorKind, type AuditEntry } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { timeText, words } from "../format.ts";
import type { Loaded } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Link } from "../parts/link.tsx";
import { type Pager, PagerButtons } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { narrow } from "../route.ts";
import { changesOf } from "./changes.ts";
import { type Filter, type Found, narrows } from "./filter.ts";
import { sentenceOf } from "./sentence.ts";

const ACTORS: Partial<Record<ActorKind, string>> = {
  [ActorKind.OPERATOR]: "Operator",
  [ActorKind.OWNER]: "Owner",
  [ActorKind.SERVICE]: "Service",
  [ActorKind.MEMBER]: "Member",
};

interface Props {
  page: Loaded<Found>;
  pager: Pager;
  filter: Filter;
  /** Address of the audit log of one workspace. With it, a column names the workspace of each change. */
  addressOfWorkspace?: (name: string) => string;
}

/** A page of the audit log. */
export function AuditCard({ page, pager, filter, addressOfWorkspace }: Props) {
  const columns = addressOfWorkspace ? withWorkspace(addressOfWorkspace) : COLUMNS;
  return (
    <Card flush>
      <Pending of={page} what="changes" skeleton={<Skeleton tall="20rem" />}>
        {({ entries, next, searchedTo }) => (
          <>
            {entries.length === 0 ? (
              <None isFiltered={narrows(filter)} searchedTo={next ? searchedTo : undefined} />
            ) : (
              <DataTable label="Changes" columns={columns} rows={entries} keyOf={({ id }) => id} />
            )}
            <PagerButtons pager={pager} next={next} />
          </>
        )}
      </Pending>
    </Card>
  );
}

/** In place of an empty page. @param searchedTo the time to which it was searched, if that is not all */
function None({ isFiltered, searchedTo }: { isFiltered: boolean; searchedTo: Timestamp | undefined }) {
  if (!isFiltered) return <Empty title="There are no changes yet." icon={ScrollText} />;
  if (!searchedTo) return <Empty title="No change matches." icon={ScrollText} />;
  return (
    <Empty title={`No change matches back to ${timeText(searchedTo)}.`} icon={ScrollText}>
      <p>Go to older changes to search further.</p>
    </Empty>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  { title: "Time", cell: ({ at }) => timeText(at) },
  { title: "Change", class: "name", cell: (entry) => <Sentence of={entry} /> },
  {
    title: "By",
    cell: ({ actorKind, actorId, actorName }) => (
      <span>
        {actorName && <strong>{actorName}, </strong>}
        {ACTORS[actorKind] ?? "Unknown"}{" "}
        <button
          type="button"
          class="link"
          title={`Only changes by ${actorName || actorId}`}
          onClick={() => narrow({ actor: actorId })}
        >
          <code>{actorId}</code>
        </button>
      </span>
    ),
  },
  { title: "Details", class: "name details-of", cell: (entry) => <Changes of={entry} /> },
];

function withWorkspace(addressOf: NonNullable<Props["addressOfWorkspace"]>): Column<AuditEntry>[] {
  const [time, ...others] = COLUMNS;
  const workspace: Column<AuditEntry> = {
    title: "Workspace",
    cell: ({ workspace }) => (workspace ? <Link to={addressOf(workspace)}>{workspace}</Link> : "Service"),
  };
  return time ? [time, workspace, ...others] : [];
}

function Sentence({ of: { action, details } }: { of: AuditEntry }) {
  const { text, of } = sentenceOf(action, changesOf(details));
  return (
    <span title={action}>
      {text} {of && <strong>{of}</strong>}
    </span>
  );
}

function Changes({ of: { action, details } }: { of: AuditEntry }) {
  const { others: changes } = sentenceOf(action, changesOf(details));
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
