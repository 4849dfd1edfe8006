import { Landmark } from "lucide";
import type { LedgerEntry, LedgerHour } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Empty } from "../parts/empty.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { FilterChoice } from "../parts/filter-choice.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { PeriodPicker, periodOf } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { narrow, useRoute } from "../route.ts";
import { credits } from "../rpc.ts";
import { EntryTable } from "./entry-table.tsx";
import { type LedgerFilter, OPTIONS, requestOf, shownOf } from "./filter.ts";
import { HourTable } from "./hour-table.tsx";
import { readHours } from "./hours.ts";
import { saveStatement } from "./statement.ts";

/** Lists the movements of credit, or the sums of the settlements of each hour. */
export function LedgerPage() {
  const { query } = useRoute();
  const filter = { period: periodOf(query, "30d"), show: shownOf(query) };
  const { period, show } = filter;
  const of = `${period.key} ${show}`;
  const pager = usePager(of);
  const page = useLoad((signal) => read(filter, pager.token, signal), `${of} ${pager.token}`);
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
        <Refresh run={page.reload} />
      </div>
      <Card flush>
        <Pending of={page} what="movements" skeleton={<Skeleton tall="30rem" />}>
          {(found) => (
            <>
              <Rows found={found} holds={show === "all"} />
              <PagerButtons pager={pager} next={found.nextPageToken} />
            </>
          )}
        </Pending>
      </Card>
    </>
  );
}

interface Found {
  readonly entries?: readonly LedgerEntry[];
  readonly hours?: readonly LedgerHour[];
  readonly nextPageToken: string;
}

function read(filter: LedgerFilter, pageToken: string, signal: AbortSignal): Promise<Found> {
  return filter.show === "hours"
    ? readHours(filter.period, pageToken, 50, signal)
    : credits.listLedger({ ...requestOf(filter), pageSize: 50, pageToken }, { signal });
}

function Rows({ found, holds }: { found: Found; holds: boolean }) {
  const { entries = [], hours = [] } = found;
  if (hours.length > 0) return <HourTable hours={hours} />;
  if (entries.length > 0) return <EntryTable entries={entries} holds={holds} />;
  if (found.nextPageToken) return <Empty title="Nothing on this page, but there is more." />;
  return (
    <Empty title="Nothing moved in this period." icon={Landmark}>
      <p>Choose a longer period, or other movements.</p>
    </Empty>
  );
}
