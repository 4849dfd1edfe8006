import type { Generation } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { FindRun } from "../activity/find-run.tsx";
import { End } from "../activity/generation-table.tsx";
import { columnAmount, duration, timeText } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Link } from "../parts/link.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { boundsOf, type Period } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { go } from "../route.ts";
import { addressOf } from "./pages.ts";
import { activity } from "./rpc.ts";

/** The requests of a workspace in a period, with links to their runs, and a field that opens one by its identifier. */
export function WorkspaceRequests({ workspace, period }: { workspace: string; period: Period }) {
  const pager = usePager(period.key);
  const list = useLoad(
    (signal) =>
      activity.listGenerations({ ...boundsOf(period), workspace, pageSize: 10, pageToken: pager.token }, { signal }),
    `${workspace} ${period.key} ${pager.token}`,
  );
  const runOf = (id: string) => addressOf(`runs/${id}`, { workspace });
  return (
    <Card title="Requests" flush actions={<FindRun open={(id) => go(runOf(id))} />}>
      <Pending of={list} what="requests" skeleton={<Skeleton tall="16rem" />}>
        {({ generations, nextPageToken }) => (
          <>
            {generations.length === 0 ? (
              <Empty title="No requests in this period." />
            ) : (
              <DataTable label="Requests" columns={columnsOf(runOf)} rows={generations} keyOf={({ id }) => id} />
            )}
            <PagerButtons pager={pager} next={nextPageToken} />
          </>
        )}
      </Pending>
    </Card>
  );
}

function columnsOf(runOf: (id: string) => string): Column<Generation>[] {
  return [
    { title: "Time", cell: ({ id, at }) => <Link to={runOf(id)}>{timeText(at)}</Link> },
    { title: "Key", class: "name", cell: ({ keyName, keyId }) => keyName || keyId },
    { title: "Level", class: "half", cell: ({ level }) => wordOf(EffortSchema, level) },
    { title: "Credits", class: "half", figure: true, cell: ({ credits }) => columnAmount(credits, 6) },
    { title: "Latency", class: "half", figure: true, cell: ({ latencyMs }) => duration(latencyMs) },
    { title: "Outcome", cell: (row) => <End row={row} /> },
  ];
}
