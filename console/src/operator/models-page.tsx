import { Boxes } from "lucide";
import { useState } from "preact/hooks";
import { type ModelFailure, ModelHealth, type ModelState } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { ago, count, duration, percent, roundAmount } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Actions, DisableDialog, Disabled } from "./disable-model.tsx";
import { LearnedCard } from "./learned.tsx";
import { ModelCharts } from "./model-charts.tsx";
import { operations } from "./rpc.ts";
import { TestDialog } from "./test-model.tsx";

const EVERY_MS = 10_000;

const HEALTH: Partial<Record<ModelHealth, readonly [text: string, tone: string]>> = {
  [ModelHealth.HEALTHY]: ["Healthy", "good"],
  [ModelHealth.UNUSED]: ["Unused", ""],
  [ModelHealth.DEGRADED]: ["Degraded", "warn"],
  [ModelHealth.DOWN]: ["Down", "bad"],
  [ModelHealth.DISABLED]: ["Disabled", "warn"],
};

/** Shows the models of the catalogue, from what the replicas report. */
export function ModelsPage() {
  const list = useLoad((signal) => operations.listModels({}, { signal }), "models", EVERY_MS);
  const [asked, setAsked] = useState<{ model: ModelState; to: "test" | "disable" }>();
  const columns = [
    ...COLUMNS,
    {
      title: "",
      class: "actions",
      cell: (of: ModelState) => <Actions of={of} ask={(to) => setAsked({ model: of, to })} done={list.reload} />,
    },
  ];
  const close = () => {
    setAsked(undefined);
    list.reload();
  };
  return (
    <>
      <PageHead title="Models" lead="Calls of the last 15 minutes, over all replicas.">
        <Refresh run={list.reload} />
      </PageHead>
      <Card flush>
        <Pending of={list} what="models" skeleton={<Skeleton tall="16rem" />}>
          {({ models }) =>
            models.length === 0 ? (
              <Empty title="No replica has reported yet." icon={Boxes}>
                <p>Replicas report every ten seconds.</p>
              </Empty>
            ) : (
              <DataTable
                label="Models"
                columns={columns}
                rows={models}
                keyOf={({ name }) => name}
                isOff={({ disabled }) => disabled !== undefined}
              />
            )
          }
        </Pending>
      </Card>
      <ModelCharts />
      <LearnedCard everyMs={EVERY_MS} />
      {asked?.to === "test" && <TestDialog model={asked.model.name} close={close} />}
      {asked?.to === "disable" && <DisableDialog of={asked.model} all={list.data?.models ?? []} close={close} />}
    </>
  );
}

const COLUMNS: Column<ModelState>[] = [
  { title: "Model", cell: (of) => <Name of={of} /> },
  {
    title: "Health",
    class: ({ lastFailure, disabled }) => (lastFailure || disabled ? "why" : ""),
    cell: (of) => <Health of={of} />,
  },
  {
    title: "Calls",
    figure: true,
    cell: ({ calls, shareOfCalls }) => (
      <div>
        {count(calls)} {calls > 0n && <div class="soft small">{percent(shareOfCalls)}</div>}
      </div>
    ),
  },
  {
    title: "Failed",
    figure: true,
    cell: ({ calls, failedCalls }) => percent(calls === 0n ? 0 : Number(failedCalls) / Number(calls)),
  },
  { title: "First text", figure: true, cell: (of) => <FirstText of={of} /> },
  { title: "Cost, USD", figure: true, cell: ({ costUsd }) => roundAmount(costUsd) },
  { title: "Running", figure: true, cell: ({ running }) => count(running) },
];

/** Name, tier, vendor and API, and what the vendor says has answered, marked if the catalogue expects another one. */
function Name({ of: { name, tier, vendor, api, servedVersion, unexpectedVersion } }: { of: ModelState }) {
  return (
    <div>
      {name}
      <div class="soft small">
        {tier}, {vendor}
        {api && <span title="API over which the model is called"> ({api})</span>}
      </div>
      {servedVersion !== "" && (
        <div class="soft small" title="What the vendor says has answered">
          {servedVersion}
        </div>
      )}
      {unexpectedVersion && <span class="tag warn">unexpected</span>}
    </div>
  );
}

function Health({ of }: { of: ModelState }) {
  const [text, tone] = HEALTH[of.health] ?? ["Unknown", ""];
  const isSplit = of.openCircuits > 0 && of.openCircuits < of.replicas;
  return (
    <div>
      <span class={`tag ${tone}`}>{text}</span>
      {isSplit && (
        <span class="soft small">
          {" "}
          not called by {of.openCircuits} of {of.replicas} replicas
        </span>
      )}
      {of.disabled && <Disabled of={of.disabled} />}
      {of.lastFailure && <LastFailure of={of.lastFailure} />}
    </div>
  );
}

function FirstText({ of: { firstTextP50Ms: median, firstTextP95Ms: p95 } }: { of: ModelState }) {
  if (median === undefined) return null;
  return (
    <div>
      {duration(median)} {p95 !== undefined && <div class="soft small">95 %: {duration(p95)}</div>}
    </div>
  );
}

/** Why the last call failed, and what to do if waiting does not help. */
function LastFailure({ of: { at, status, code, message, count: times, action } }: { of: ModelFailure }) {
  return (
    <div class="soft small">
      {[status, code].filter(Boolean).join(" ") || "failed"}
      {at && `, ${ago(at)}`}
      {times > 1n && `, ${count(times)} times`}
      {message && <div>The vendor says: {message}.</div>}
      {action && <div>{action}</div>}
    </div>
  );
}
