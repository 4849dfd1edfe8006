import { Landmark, RefreshCw } from "lucide";
import { useState } from "preact/hooks";
import { day } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Empty } from "../parts/empty.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { boundsOf, PeriodPicker, periodOf } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { useRoute } from "../route.ts";
import { credits } from "../rpc.ts";
import { EntryTable } from "./entry-table.tsx";
import { saveStatement } from "./statement.ts";

/** Lists the movements of credit. */
export function LedgerPage() {
  const { query } = useRoute();
  const period = periodOf(query, "30d");
  const [holds, setHolds] = useState(false);
  const of = `${period.key} ${holds}`;
  const pager = usePager(of);
  const page = useLoad(
    (signal) =>
      credits.listLedger(
        { ...boundsOf(period), chargesOnly: !holds, pageSize: 50, pageToken: pager.token },
        { signal },
      ),
    `${of} ${pager.token}`,
  );
  return (
    <>
      <PageHead
        title="Ledger"
        lead="Every movement of credit, newest first. A request is one settlement, exact to a millionth of a credit."
      >
        <ExportButton label="Statement as CSV" run={(progress, signal) => saveStatement(period, progress, signal)} />
      </PageHead>
      <div class="toolbar">
        <PeriodPicker period={period} />
        <label class="check">
          <input type="checkbox" checked={holds} onChange={(event) => setHolds(event.currentTarget.checked)} />
          Show holds and releases
        </label>
        <button type="button" aria-label="Refresh" title="Refresh" onClick={page.reload}>
          <Icon of={RefreshCw} />
        </button>
      </div>
      <Card flush>
        <Pending of={page} what="movements" skeleton={<Skeleton tall="30rem" />}>
          {({ entries, nextPageToken }) => (
            <>
              {entries.length === 0 ? (
                <Empty title="Nothing moved in this period." icon={Landmark}>
                  <p>Since {day(period.from)} no credit was granted, purchased or spent.</p>
                </Empty>
              ) : (
                <EntryTable entries={entries} holds={holds} />
              )}
              <PagerButtons pager={pager} next={nextPageToken} />
            </>
          )}
        </Pending>
      </Card>
    </>
  );
}
