import { Building2, Plus, RefreshCw } from "lucide";
import { useState } from "preact/hooks";
import { WorkspaceCondition, type WorkspaceState } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { LimitNameSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, count, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icon.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Search } from "../parts/search.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { go, useRoute } from "../route.ts";
import { CreateWorkspace } from "./create-workspace.tsx";
import { addressOfWorkspace } from "./pages.ts";
import { operations } from "./rpc.ts";

const CONDITIONS: Partial<Record<WorkspaceCondition, readonly [text: string, tone: string]>> = {
  [WorkspaceCondition.OPEN]: ["Active", "good"],
  [WorkspaceCondition.UNUSED]: ["Unused", ""],
  [WorkspaceCondition.LIMIT_REACHED]: ["Limit reached", "warn"],
  [WorkspaceCondition.NO_CREDIT]: ["No credit", "bad"],
};

/** Lists workspaces with balance, use and state. A row opens the page of one. */
export function WorkspacesPage() {
  const { query } = useRoute();
  const name = query.get("search") ?? "";
  const pager = usePager(name);
  const list = useLoad(
    (signal) => operations.listWorkspaceStates({ pageSize: 50, pageToken: pager.token, name }, { signal }),
    `${name} ${pager.token}`,
  );
  const [isCreating, setIsCreating] = useState(false);
  return (
    <>
      <PageHead title="Workspaces" lead="Requests and credits of the last 24 hours.">
        <button type="button" class="primary" onClick={() => setIsCreating(true)}>
          <Icon of={Plus} />
          New workspace
        </button>
        <button type="button" aria-label="Refresh" title="Refresh" onClick={list.reload}>
          <Icon of={RefreshCw} />
        </button>
      </PageHead>
      <div class="toolbar">
        <Search value={name} label="Find workspaces" placeholder="Find by a part of the name" />
      </div>
      <Card flush>
        <Pending of={list} what="workspaces" skeleton={<Skeleton tall="20rem" />}>
          {({ workspaces, nextPageToken }) => (
            <>
              {workspaces.length === 0 ? (
                <Empty
                  title={name ? "No workspace has this in its name." : "There is no workspace yet."}
                  icon={Building2}
                />
              ) : (
                <DataTable
                  label="Workspaces"
                  columns={COLUMNS}
                  rows={workspaces}
                  keyOf={nameOf}
                  open={(row) => go(addressOfWorkspace(nameOf(row)))}
                />
              )}
              <PagerButtons pager={pager} next={nextPageToken} words={["Previous", "Next"]} />
            </>
          )}
        </Pending>
      </Card>
      {isCreating && (
        <CreateWorkspace close={() => setIsCreating(false)} created={(name) => go(addressOfWorkspace(name))} />
      )}
    </>
  );
}

const COLUMNS: Column<WorkspaceState>[] = [
  { title: "Workspace", class: "name", cell: (row) => <Link to={addressOfWorkspace(nameOf(row))}>{nameOf(row)}</Link> },
  { title: "State", cell: (row) => <State of={row} /> },
  { title: "Tier", cell: ({ workspace: of }) => of?.tier },
  { title: "Granted", figure: true, cell: ({ workspace: of }) => amount(of?.granted ?? "0") },
  { title: "Purchased", figure: true, cell: ({ workspace: of }) => amount(of?.purchased ?? "0") },
  { title: "Requests", figure: true, cell: ({ requests }) => count(requests) },
  { title: "Failed", figure: true, cell: ({ failedRequests }) => count(failedRequests) },
  { title: "Credits", figure: true, cell: ({ credits }) => amount(credits) },
];

function State({ of }: { of: WorkspaceState }) {
  const [text, tone] = CONDITIONS[of.condition] ?? ["Unknown", ""];
  const limits = of.reachedLimits.map((name) => words(wordOf(LimitNameSchema, name))).join(", ");
  return (
    <>
      <span class={`tag ${tone}`}>{text}</span>
      {limits && <span class="soft small"> {limits}</span>}
    </>
  );
}

function nameOf({ workspace }: WorkspaceState): string {
  return workspace?.name ?? "";
}
