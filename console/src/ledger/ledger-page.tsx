import { Landmark, RefreshCw } from "lucide";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Empty } from "../parts/empty.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { FilterChoice } from "../parts/filter-choice.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { PeriodPicker, periodOf } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { narrow, useRoute } from "../route.ts";
import { credits } from "../rpc.ts";
import { EntryTable } from "./entry-table.tsx";
import { OPTIONS, requestOf, shownOf } from "./filter.ts";
import { saveStatement } from "./statement.ts";

/** Lists the movements of credit. */
export function LedgerPage() {
  const { query } = useRoute();
  const period = periodOf(query, "30d");
  const show = shownOf(query);
  const filter = { period, show };
  const of = `${period.key} ${show}`;
  const pager = usePager(of);
  const page = useLoad(
    (signal) => credits.listLedger({ ...requestOf(filter), pageSize: 50, pageToken: pager.token }, { signal }),
    `${of} ${pager.token}`,
  );
  return (
    <>
      <PageHead
        title="Ledger"
        lead="Every movement of credit, newest first. A request is one settlement, exact to a millionth of a credit."
      >
        <ExportButton label="Statement as CSV" run={(progress, signal) => saveStatement(filter, progress, signal)} />
      </PageHead>
      <div class="toolbar">
        <PeriodPicker period={period} />
        <FilterChoice label="Movements" value={show} options={OPTIONS} change={(show) => narrow({ show })} />
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
                  <p>Choose a longer period, or other movements.</p>
                </Empty>
              ) : (
                <EntryTable entries={entries} holds={show === "all"} />
              )}
              <PagerButtons pager={pager} next={nextPageToken} />
            </>
          )}
        </Pending>
      </Card>
    </>
  );
}
