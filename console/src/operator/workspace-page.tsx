import { useLoad } from "../load.ts";
import { Balance } from "../overview/balance.tsx";
import { Charts } from "../overview/charts.tsx";
import { UsageStats } from "../overview/stats.tsx";
import { useFigures } from "../overview/use-figures.ts";
import { Refresh } from "../parts/icon-button.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pending } from "../parts/pending.tsx";
import { type Period, PeriodPicker, PREVIOUS_MS, periodOf, previousOf } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { useRoute } from "../route.ts";
import { addressOf, workspaceIn } from "./pages.ts";
import { usage, workspaces } from "./rpc.ts";
import { WorkspaceActions } from "./workspace-actions.tsx";
import { WorkspaceFacts } from "./workspace-facts.tsx";
import { WorkspaceRequests } from "./workspace-requests.tsx";

/** A workspace, what it uses, and what an operator can do with it: `operator/workspaces/{name}`. */
export function WorkspacePage() {
  const { page, query } = useRoute();
  const name = workspaceIn(page);
  const period = periodOf(query);
  const loaded = useLoad((signal) => workspaces.getWorkspace({ workspace: name }, { signal }), name);
  return (
    <>
      <PageHead title={name} lead="A workspace.">
        <Link to={addressOf("audit", { workspace: name })} class="button">
          Audit log
        </Link>
        <Link to={addressOf("workspaces")} class="button">
          Workspaces
        </Link>
        <PeriodPicker period={period} />
        <Refresh run={loaded.reload} />
      </PageHead>
      <Pending of={loaded} what="the workspace" skeleton={<Skeleton tall="20rem" />}>
        {({ workspace }) =>
          workspace && (
            <>
              <Balance workspace={workspace} />
              <WorkspaceUsage workspace={name} period={period} />
              <WorkspaceFacts of={workspace} />
              <WorkspaceActions name={name} changed={loaded.reload} />
              <WorkspaceRequests workspace={name} period={period} />
            </>
          )
        }
      </Pending>
    </>
  );
}

function WorkspaceUsage({ workspace, period }: { workspace: string; period: Period }) {
  const figures = useFigures({ calls: usage, workspace, period, everyMs: 15_000 });
  const before = useFigures({ calls: usage, workspace, period: previousOf(period), everyMs: PREVIOUS_MS });
  return (
    <Pending of={figures} what="use" skeleton={<Skeleton tall="20rem" />}>
      {(data) => (
        <>
          <UsageStats figures={data} before={before.data} />
          <Charts figures={data} period={period} />
        </>
      )}
    </Pending>
  );
}
