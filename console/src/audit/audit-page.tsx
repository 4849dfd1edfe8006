import { ExportButton } from "../parts/export-button.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { useRoute } from "../route.ts";
import { activity } from "../rpc.ts";
import { AuditLog } from "./audit-log.tsx";
import { filterOf } from "./filter.ts";
import { saveAudit } from "./save-audit.ts";

/** Lists who changed what in the workspace. */
export function AuditPage() {
  const filter = filterOf(useRoute().query);
  return (
    <>
      <PageHead title="Audit log" lead="Who changed what in this workspace: keys, limits, credit, tokens, members.">
        <ExportButton label="Export as CSV" run={(progress, signal) => saveAudit(activity, filter, progress, signal)} />
      </PageHead>
      <AuditLog calls={activity} filter={filter} />
    </>
  );
}
