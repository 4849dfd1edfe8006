import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { useLoad } from "../load.ts";
import { Empty } from "../parts/empty.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { boundsOf, PeriodPicker, periodOf } from "../parts/period.tsx";
import { useRoute } from "../route.ts";
import { credits } from "../rpc.ts";
import { EntryTable } from "./entry-table.tsx";
import { saveStatement } from "./statement.ts";

/** Lists the movements of credit. */
export function LedgerPage() {
  const { query } = useRoute();
  const period = periodOf(query, "30d");
  const [holds, setHolds] = useState(false);
  const of = `${period.name} ${query.get("from")} ${query.get("to")} ${holds}`;
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
      <h1 tabIndex={-1}>Ledger</h1>
      <p class="lead">
        Every movement of the workspace's credit, newest first. A request is one settlement, exact to a millionth of a
        credit.
      </p>
      <div class="toolbar">
        <PeriodPicker period={period} />
        <label class="check">
          <input type="checkbox" checked={holds} onChange={(event) => setHolds(event.currentTarget.checked)} />
          Show holds and releases
        </label>
        <ExportButton label="Statement as CSV" run={(progress, signal) => saveStatement(period, progress, signal)} />
        <button type="button" onClick={page.reload}>
          Refresh
        </button>
      </div>
      <Pending of={page} what="movements">
        {({ entries, nextPageToken }) => (
          <>
            {entries.length === 0 ? (
              <Empty title="Nothing moved in this period.">
                <p>
                  Since {timestampDate(boundsOf(period).startTime).toISOString().slice(0, 10)} no credit was granted,
                  purchased or spent.
                </p>
              </Empty>
            ) : (
              <EntryTable entries={entries} holds={holds} />
            )}
            <PagerButtons pager={pager} next={nextPageToken} />
          </>
        )}
      </Pending>
    </>
  );
}
