import { Building2, Plus } from "lucide";
import { useRef, useState } from "preact/hooks";
import {
  WorkspaceCondition,
  WorkspaceOrder,
  type WorkspaceState,
  type WorkspaceTotals,
} from "../../../gen/chorus/admin/v1/operations_pb.js";
import { LimitNameSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, count, day, roundAmount, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { FilterChoice } from "../parts/filter-choice.tsx";
import { Icon } from "../parts/icon.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Search } from "../parts/search.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Stat } from "../parts/stat.tsx";
import { go, narrow, useRoute } from "../route.ts";
import { CreateWorkspace } from "./create-workspace.tsx";
import { addressOfWorkspace } from "./pages.ts";
import { operations } from "./rpc.ts";

const CONDITIONS: Partial<Record<WorkspaceCondition, readonly [text: string, tone: string]>> = {
  [WorkspaceCondition.OPEN]: ["Active", "good"],
  [WorkspaceCondition.UNUSED]: ["Unused", ""],
  [WorkspaceCondition.LIMIT_REACHED]: ["Limit reached", "warn"],
  [WorkspaceCondition.NO_CREDIT]: ["No credit", "bad"],
  [WorkspaceCondition.SPEND_LIMIT_REACHED]: ["Spend limit reached", "warn"],
};

const { NAME, CREATED, BALANCE, SPEND } = WorkspaceOrder;

/** Orders by their words in the address. */
const ORDERS = [
  ["", "By name", { order: NAME, descending: false }],
  ["new", "Newest first", { order: CREATED, descending: true }],
  ["poor", "Lowest balance first", { order: BALANCE, descending: false }],
  ["rich", "Highest balance first", { order: BALANCE, descending: true }],
  ["spend", "Most credits used first", { order: SPEND, descending: true }],
] as const;

/** Lists workspaces with balance, use and state. A row opens the page of one. */
export function WorkspacesPage() {
  const { query } = useRoute();
  const name = query.get("search") ?? "";
  const [sort, , order] = ORDERS.find(([word]) => word === query.get("sort")) ?? ORDERS[0];
  const pager = usePager(`${sort} ${name}`);
  const list = useLoad(
    (signal) => operations.listWorkspaceStates({ pageSize: 50, pageToken: pager.token, name, ...order }, { signal }),
    `${sort} ${name} ${pager.token}`,
  );
  const totals = useTotals(name, list.data?.totals);
  const [isCreating, setIsCreating] = useState(false);
  return (
    <>
      <PageHead title="Workspaces" lead="Requests and credits of the last 24 hours.">
        <button type="button" class="primary" onClick={() => setIsCreating(true)}>
          <Icon of={Plus} />
          New workspace
        </button>
        <Refresh run={list.reload} />
      </PageHead>
      <Totals of={totals} />
      <div class="toolbar">
        <Search value={name} label="Find workspaces" placeholder="Find by a part of the name" />
        <FilterChoice label="Order" value={sort} options={OPTIONS} change={(sort) => narrow({ sort })} />
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

const OPTIONS = ORDERS.map(([word, label]) => [word, label] as const);

/** The sums for a name, which only the first page has. */
function useTotals(name: string, loaded: WorkspaceTotals | undefined): WorkspaceTotals | undefined {
  const last = useRef<{ name: string; totals: WorkspaceTotals } | undefined>(undefined);
  if (loaded) last.current = { name, totals: loaded };
  return last.current?.name === name ? last.current.totals : undefined;
}

/** Sums over the workspaces that are listed on all pages. @param of undefined while they load */
function Totals({ of }: { of: WorkspaceTotals | undefined }) {
  return (
    <dl class="stats short" aria-label="Sums of all workspaces">
      <Stat label="Workspaces" value={of && count(of.workspaces)} />
      <Stat label="Balance" value={of && roundAmount(of.balance)} unit="credits" />
      <Stat label="Requests, 24 hours" value={of && count(of.requests)}>
        {of && `${count(of.failedRequests)} failed`}
      </Stat>
      <Stat label="Used, 24 hours" value={of && roundAmount(of.credits)} unit="credits" />
    </dl>
  );
}

const COLUMNS: Column<WorkspaceState>[] = [
  { title: "Workspace", class: "name", cell: (row) => <Link to={addressOfWorkspace(nameOf(row))}>{nameOf(row)}</Link> },
  { title: "State", cell: (row) => <State of={row} /> },
  { title: "Tier", cell: ({ workspace: of }) => of?.tier },
  { title: "Created", cell: ({ workspace: of }) => day(of?.createdAt) },
  { title: "Balance", figure: true, cell: ({ balance }) => amount(balance) },
  { title: "Requests", figure: true, cell: ({ requests }) => count(requests) },
  { title: "Failed", figure: true, cell: ({ failedRequests }) => count(failedRequests) },
  { title: "Used", figure: true, cell: ({ credits }) => amount(credits) },
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
