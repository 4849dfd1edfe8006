import { AuditLog } from "../audit/audit-log.tsx";
import { filterOf } from "../audit/filter.ts";
import { saveAudit } from "../audit/save-audit.ts";
import { ExportButton } from "../parts/export-button.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { useRoute } from "../route.ts";
import { addressOf } from "./pages.ts";
import { activity } from "./rpc.ts";

/** Lists who changed what: in the workspace that the address names, or in the service as a whole. */
export function AuditPage() {
  const { query } = useRoute();
  const workspace = query.get("workspace") ?? "";
  const filter = filterOf(query, workspace);
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
        <ExportButton label="Export as CSV" run={(progress, signal) => saveAudit(activity, filter, progress, signal)} />
      </PageHead>
      <AuditLog
        calls={activity}
        filter={filter}
        {...(workspace ? {} : { addressOfWorkspace: (name) => addressOf("audit", { workspace: name }) })}
      />
    </>
  );
}
