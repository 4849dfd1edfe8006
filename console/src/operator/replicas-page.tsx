import { Cpu } from "lucide";
import type { ReplicaState } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { ago, amount, count, timeText, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { operations } from "./rpc.ts";

const EVERY_MS = 10_000;

/** Shows the replicas that run: their journals, what they refused under overload, and their grants. */
export function ReplicasPage() {
  const list = useLoad((signal) => operations.listReplicas({}, { signal }), "replicas", EVERY_MS);
  return (
    <>
      <PageHead title="Replicas" lead="Processes of the service that have reported in the last 35 seconds.">
        <Refresh run={list.reload} />
      </PageHead>
      <Pending of={list} what="replicas" skeleton={<Skeleton tall="12rem" />}>
        {({ replicas }) => (
          <>
            {replicas.some((of) => setAside(of) > 0n) && (
              <Note tone="warn">
                Journals have lines that are set aside. Nothing is charged for them. They are in the files damaged and
                refused of <code>DATA_DIR/journal</code> on their machine.
              </Note>
            )}
            <Card flush>
              {replicas.length === 0 ? (
                <Empty title="No replica has reported yet." icon={Cpu} />
              ) : (
                <DataTable label="Replicas" columns={COLUMNS} rows={replicas} keyOf={({ id }) => id} />
              )}
            </Card>
            {replicas.length > 0 && (
              <Card
                flush
                title="Grants"
                text="Reserved of workspaces. A replica admits requests against this without the database."
              >
                <DataTable label="Grants" columns={GRANTS} rows={replicas} keyOf={({ id }) => id} />
              </Card>
            )}
          </>
        )}
      </Pending>
    </>
  );
}

const HOST: Column<ReplicaState> = { title: "Host", cell: ({ host, pid }) => `${host} · ${pid}` };

const COLUMNS: Column<ReplicaState>[] = [
  HOST,
  { title: "Version", cell: ({ version }) => version },
  {
    title: "Started",
    cell: ({ startedAt }) => startedAt && <span title={timeText(startedAt)}>{ago(startedAt)}</span>,
  },
  { title: "Running", figure: true, cell: ({ running }) => count(running) },
  { title: "Memory, MB", figure: true, cell: ({ memoryBytes }) => count(memoryBytes / 1_000_000n) },
  { title: "Event loop, ms", figure: true, cell: ({ loopDelayMs }) => loopDelayMs.toFixed(1) },
  { title: "In the journal", figure: true, cell: ({ journal }) => count(journal?.waiting ?? 0n) },
  { title: "Set aside", figure: true, cell: (of) => count(setAside(of)) },
  {
    title: "Refused under overload",
    class: "name",
    cell: ({ overload }) =>
      overload
        .filter(({ requests }) => requests > 0n)
        .map(({ cause, requests }) => `${words(cause)} ${count(requests)}`)
        .join(", ") || "nothing",
  },
];

const GRANTS: Column<ReplicaState>[] = [
  HOST,
  { title: "Workspaces", figure: true, cell: ({ grants }) => count(grants?.workspaces ?? 0n) },
  { title: "Credits", figure: true, cell: ({ grants }) => amount(grants?.reservedCredits ?? "0") },
  { title: "Held by requests", figure: true, cell: ({ grants }) => amount(grants?.heldCredits ?? "0") },
  { title: "Concurrent requests", figure: true, cell: ({ grants }) => count(grants?.concurrentRequests ?? 0n) },
  {
    title: "Oldest",
    cell: ({ grants: { oldestAt } = {} }) => oldestAt && <span title={timeText(oldestAt)}>{ago(oldestAt)}</span>,
  },
];

function setAside({ journal }: ReplicaState): bigint {
  return (journal?.damaged ?? 0n) + (journal?.refused ?? 0n);
}
