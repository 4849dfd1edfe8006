import { RefreshCw } from "lucide";
import { AuditCard } from "../audit/audit-card.tsx";
import { useLoad } from "../load.ts";
import { Icon } from "../parts/icon.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { usePager } from "../parts/pager.tsx";
import { useRoute } from "../route.ts";
import { addressOf } from "./pages.ts";
import { activity } from "./rpc.ts";

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
          workspace
            ? `Changes in the workspace ${workspace}.`
            : "Every change: in all workspaces, and of the service itself."
        }
      >
        {workspace && <Link to={addressOf("audit")}>All changes</Link>}
        <button type="button" aria-label="Refresh" title="Refresh" onClick={page.reload}>
          <Icon of={RefreshCw} />
        </button>
      </PageHead>
      <AuditCard
        page={page}
        pager={pager}
        {...(workspace ? {} : { addressOfWorkspace: (name) => addressOf("audit", { workspace: name }) })}
      />
    </>
  );
}
