import { CircleCheck } from "lucide";
import type {
  GetServiceUsageResponse,
  ModelUsage,
  ServiceFigures,
  WorkspaceUsage,
} from "../../../gen/chorus/admin/v1/operations_pb.js";
import { columnAmount, count, percent, roundAmount } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pending } from "../parts/pending.tsx";
import { boundsOf, intervalOf, type Period, PeriodPicker, PREVIOUS_MS, previousOf } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Change, Stat } from "../parts/stat.tsx";
import { useRoute } from "../route.ts";
import { concernsOf } from "./attention.ts";
import { dollars } from "./money.ts";
import { addressOf, addressOfWorkspace } from "./pages.ts";
import { operations } from "./rpc.ts";
import { ServiceCharts } from "./service-charts.tsx";
import { MOST_DAYS, servicePeriodOf } from "./service-period.ts";

const EVERY_MS = 15_000;

/** What the service does: requests, revenue, cost, margin, failures, and what needs attention. */
export function HomePage() {
  const period = servicePeriodOf(useRoute().query);
  const now = useUsage(period, EVERY_MS);
  const before = useUsage(previousOf(period), PREVIOUS_MS);
  const { interval, ms } = intervalOf(period);
  return (
    <>
      <PageHead title="Overview" lead="All workspaces.">
        <PeriodPicker period={period} mostDays={MOST_DAYS} />
        <Refresh run={now.reload} />
      </PageHead>
      {now.error !== undefined && <FailureNote error={now.error} retry={now.reload} />}
      <Attention />
      {(now.data !== undefined || now.error === undefined) && <Stats now={now.data} before={before.data} />}
      {now.data && <ServiceCharts key={interval} usage={now.data} ms={ms} period={period} />}
      {now.data && (
        <div class="lower">
          <TopWorkspaces of={now.data} />
          <Models of={now.data} />
        </div>
      )}
    </>
  );
}

function useUsage(period: Period, everyMs: number) {
  const { interval } = intervalOf(period);
  const load = (signal: AbortSignal) => operations.getServiceUsage({ ...boundsOf(period), interval }, { signal });
  return useLoad(load, period.key, everyMs);
}

/** Models and replicas that an operator should look at. */
function Attention() {
  const state = useLoad(
    async (signal) => {
      const [models, replicas] = await Promise.all([
        operations.listModels({}, { signal }),
        operations.listReplicas({}, { signal }),
      ]);
      return concernsOf(models, replicas);
    },
    "attention",
    EVERY_MS,
  );
  return (
    <Card title="Needs attention">
      <Pending of={state} what="what needs attention" skeleton={<Skeleton lines={2} />}>
        {(concerns) =>
          concerns.length === 0 ? (
            <Empty title="Models and replicas work." icon={CircleCheck} />
          ) : (
            <ul class="concerns">
              {concerns.map(({ tone, text, page }) => (
                <li key={text}>
                  <span class={`tag ${tone}`}>{tone === "bad" ? "Act" : "Look"}</span>{" "}
                  <Link to={addressOf(page)}>{text}</Link>
                </li>
              ))}
            </ul>
          )
        }
      </Pending>
    </Card>
  );
}

interface StatsProps {
  /** Undefined while it loads. */
  now: GetServiceUsageResponse | undefined;
  /** The period before; undefined while it loads. */
  before: GetServiceUsageResponse | undefined;
}

function Stats({ now, before }: StatsProps) {
  const [of, then] = [sumsOf(now), sumsOf(before)];
  const price = now?.usdPerCredit;
  return (
    <dl class="stats" aria-label="Sums of the period">
      <Stat label="Requests" value={of && count(of.requests)}>
        <Change now={of?.requests} before={then?.requests} />
      </Stat>
      <Stat label="Failed" value={of && percent(of.failed)}>
        <Change now={of?.failed} before={then?.failed} more="worse" />
      </Stat>
      <Stat
        label="Revenue"
        value={of && (price === undefined ? roundAmount(of.credits) : dollars(of.credits * price))}
        unit={price === undefined ? "credits" : undefined}
      >
        <Change now={of?.credits} before={then?.credits} more="better" />
      </Stat>
      <Stat label="Cost of models" value={of && dollars(of.cost)}>
        <Change now={of?.cost} before={then?.cost} />
      </Stat>
      <Stat label="Margin" value={of && marginText(of, price)}>
        {price === undefined && "Set CHORUS_USD_PER_CREDIT to see it"}
      </Stat>
    </dl>
  );
}

interface Sums {
  readonly requests: number;
  /** Share of the requests that failed, 0 to 1. */
  readonly failed: number;
  readonly credits: number;
  /** In USD. */
  readonly cost: number;
}

function sumsOf(usage: GetServiceUsageResponse | undefined): Sums | undefined {
  if (!usage) return undefined;
  const {
    requests = 0n,
    failedRequests = 0n,
    credits = "0",
    costUsd = 0,
  }: Partial<ServiceFigures> = usage.totals ?? {};
  const all = Number(requests + failedRequests);
  return {
    requests: Number(requests),
    failed: all === 0 ? 0 : Number(failedRequests) / all,
    credits: Number(credits),
    cost: costUsd,
  };
}

/** The share of the revenue that the calls of models leave. */
function marginText({ credits, cost }: Sums, price: number | undefined): string {
  return price === undefined || credits === 0 ? "–" : percent(1 - cost / (credits * price));
}

function TopWorkspaces({ of: { workspaces } }: { of: GetServiceUsageResponse }) {
  const columns: Column<WorkspaceUsage>[] = [
    {
      title: "Workspace",
      class: "name",
      cell: ({ name }) => <Link to={addressOfWorkspace(name)}>{name}</Link>,
    },
    { title: "Credits", figure: true, cell: ({ credits }) => columnAmount(credits) },
    { title: "Answered", figure: true, cell: ({ requests }) => count(requests) },
    { title: "Failed", figure: true, cell: ({ failedRequests }) => count(failedRequests) },
  ];
  return (
    <Card title="Workspaces with the most use" flush>
      {workspaces.length === 0 ? (
        <Empty title="No workspace sent a request in this period." />
      ) : (
        <DataTable
          label="Workspaces with the most use"
          columns={columns}
          rows={workspaces}
          keyOf={({ name }) => name}
        />
      )}
    </Card>
  );
}

function Models({ of: { models } }: { of: GetServiceUsageResponse }) {
  const columns: Column<ModelUsage>[] = [
    { title: "Model", class: "name", cell: ({ name }) => name },
    { title: "Cost, USD", figure: true, cell: ({ costUsd }) => columnAmount(costUsd) },
    { title: "Calls", figure: true, cell: ({ calls }) => count(calls) },
    {
      title: "Failed",
      figure: true,
      cell: ({ calls, failedCalls }) => percent(calls === 0n ? 0 : Number(failedCalls) / Number(calls)),
    },
  ];
  return (
    <Card title="Models by cost" flush>
      {models.length === 0 ? (
        <Empty title="No model was called in this period." />
      ) : (
        <DataTable label="Models by cost" columns={columns} rows={models} keyOf={({ name }) => name} />
      )}
    </Card>
  );
}
