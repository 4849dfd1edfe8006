import type { GetServiceUsageResponse, ModelUsage } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { count, percent, short } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Chart, type ChartSeries, TONES } from "../parts/chart.tsx";
import { Empty } from "../parts/empty.tsx";
import { Pending } from "../parts/pending.tsx";
import { boundsOf, intervalOf, type Period, PeriodPicker } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { useRoute } from "../route.ts";
import { dollars } from "./money.ts";
import { operations } from "./rpc.ts";
import { Money, pointsOf } from "./service-charts.tsx";
import { MOST_DAYS, servicePeriodOf } from "./service-period.ts";

const EVERY_MS = 15_000;

/** What the models cost and how often they were called over a period, each apart, and the cost beside the revenue. */
export function ModelCharts() {
  const period = servicePeriodOf(useRoute().query);
  const { interval, ms } = intervalOf(period);
  const usage = useLoad(
    (signal) => operations.getServiceUsage({ ...boundsOf(period), interval }, { signal }),
    period.key,
    EVERY_MS,
  );
  return (
    <section class="part">
      <div class="toolbar spread">
        <h2>Cost and calls over time</h2>
        <PeriodPicker period={period} mostDays={MOST_DAYS} />
      </div>
      <Pending of={usage} what="the use of models" skeleton={<Skeleton tall="20rem" />}>
        {(data) =>
          data.models.length === 0 ? (
            <Card>
              <Empty title="No model was called in this period." />
            </Card>
          ) : (
            <Charts key={interval} usage={data} ms={ms} period={period} />
          )
        }
      </Pending>
    </section>
  );
}

function Charts({ usage, ms, period }: { usage: GetServiceUsageResponse; ms: number; period: Period }) {
  const { common, each, of } = pointsOf(usage, ms, period);
  const { totals } = usage;
  const calls = Number(totals?.calls ?? 0);
  const split = (read: (model: ModelUsage) => number) => seriesOf(usage, each, read);
  return (
    <div class="charts">
      <Chart
        title="Cost by model"
        summary={dollars(totals?.costUsd ?? 0)}
        {...common}
        kind="bars"
        series={split(({ costUsd }) => costUsd)}
        write={dollars}
        axis={dollars}
      />
      <Money usage={usage} of={of} common={common} />
      <Chart
        title="Calls by model"
        summary={`${count(calls)} calls`}
        {...common}
        kind="bars"
        series={split((model) => Number(model.calls))}
        write={count}
        axis={short}
      />
      <Chart
        title="Failed calls by model"
        summary={percent(calls === 0 ? 0 : Number(totals?.failedCalls ?? 0) / calls)}
        {...common}
        kind="bars"
        series={split(({ failedCalls }) => Number(failedCalls))}
        write={count}
        axis={short}
      />
    </div>
  );
}

/** A figure of the five most expensive models, and of all others together. */
function seriesOf(
  { models }: GetServiceUsageResponse,
  each: ReturnType<typeof pointsOf>["each"],
  read: (model: ModelUsage) => number,
): ChartSeries[] {
  const names = models.slice(0, TONES.length).map(({ name }) => name);
  const sum = (matches: (name: string) => boolean) =>
    each((point) => point.models.reduce((all, model) => (matches(model.name) ? all + read(model) : all), 0));
  const series: ChartSeries[] = names.map((name, i) => ({
    label: name,
    values: sum((one) => one === name),
    tone: TONES[i] ?? "rest",
  }));
  if (models.length <= names.length) return series;
  return [...series, { label: "Others", values: sum((one) => !names.includes(one)), tone: "rest" }];
}
