import { RefreshCw } from "lucide";
import { useLoad } from "../load.ts";
import { ExportButton } from "../parts/export-button.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { usePager } from "../parts/pager.tsx";
import { activity } from "../rpc.ts";
import { AuditCard } from "./audit-card.tsx";
import { saveAudit } from "./save-audit.ts";

/** Lists who changed what in the workspace. */
export function AuditPage() {
  const pager = usePager("");
  const page = useLoad(
    (signal) => activity.listAudit({ pageSize: 50, pageToken: pager.token }, { signal }),
    pager.token,
  );
  return (
    <>
      <PageHead title="Audit log" lead="Who changed what in this workspace: keys, limits, credit, tokens, members.">
        <ExportButton label="Export as CSV" run={saveAudit} />
        <button type="button" aria-label="Refresh" title="Refresh" onClick={page.reload}>
          <Icon of={RefreshCw} />
        </button>
      </PageHead>
      <AuditCard page={page} pager={pager} />
    </>
  );
}
