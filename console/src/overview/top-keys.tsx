import type { KeyUsage, ListTopKeysResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { columnAmount, count } from "../format.ts";
import type { Loaded } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { keyLabels } from "../parts/key-labels.ts";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { narrow } from "../route.ts";

/** The keys with the most usage. @param chosen identifier of the key that the charts show; empty for all */
export function TopKeys({ top, chosen }: { top: Loaded<ListTopKeysResponse>; chosen: string }) {
  const labels = keyLabels(top.data?.keys ?? [], ({ keyId }) => keyId);
  const columns: Column<KeyUsage>[] = [
    {
      title: "Key",
      class: "name",
      cell: ({ keyId }) => (
        <button
          type="button"
          class="link"
          aria-pressed={keyId === chosen}
          onClick={() => narrow({ key: keyId === chosen ? undefined : keyId })}
        >
          {labels.get(keyId)}
        </button>
      ),
    },
    { title: "Credits", figure: true, cell: ({ totals }) => columnAmount(totals?.credits ?? 0) },
    { title: "Answered", figure: true, cell: ({ totals }) => count(totals?.requests ?? 0) },
    { title: "Failed", figure: true, cell: ({ totals }) => count(totals?.failedRequests ?? 0) },
    { title: "Input tokens", figure: true, cell: ({ totals }) => count(totals?.inputTokens ?? 0) },
    { title: "Output tokens", figure: true, cell: ({ totals }) => count(totals?.outputTokens ?? 0) },
  ];
  return (
    <Card title="Keys with the most usage" flush>
      <Pending of={{ ...top, error: undefined }} what="keys" skeleton={<Skeleton tall="14rem" />}>
        {({ keys }) =>
          keys.length === 0 ? (
            <Empty title="No key was used in this period." />
          ) : (
            <DataTable label="Keys with the most usage" columns={columns} rows={keys} keyOf={({ keyId }) => keyId} />
          )
        }
      </Pending>
    </Card>
  );
}
