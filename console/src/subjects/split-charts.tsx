import type { MetricsPoint, MetricsTotals } from "../../../gen/chorus/v1/generation_pb.js";
import { count, roundAmount, short } from "../format.ts";
import { type Loaded, useLoad } from "../load.ts";
import { Chart, type ChartSeries, TONES } from "../parts/chart.tsx";
import { Pending } from "../parts/pending.tsx";
import { type Period, zoomTo } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { type Group, pluralOf } from "./group.ts";
import { loadSplit, loadSubject, type Split, valuesOf } from "./split.ts";

const HOUR = 3_600_000;

const CHARTS: readonly {
  title: string;
  figure: (point: MetricsTotals | MetricsPoint) => number;
  write: (value: number) => string;
  unit: string;
}[] = [
  { title: "Spend", figure: ({ credits }) => credits, write: roundAmount, unit: "credits" },
  { title: "Requests", figure: ({ requests }) => Number(requests), write: count, unit: "answered" },
  { title: "Input tokens", figure: ({ inputTokens }) => Number(inputTokens), write: count, unit: "in" },
  { title: "Output tokens", figure: ({ outputTokens }) => Number(outputTokens), write: count, unit: "out" },
];

interface Props {
  period: Period;
  group: Group;
  everyMs: number;
}

/** Use over time of those subjects of a group that used the most credit, and of all other requests. */
export function SplitCharts({ period, group, everyMs }: Props) {
  const split = useLoad((signal) => loadSplit(period, group, signal), `${period.key} ${group}`, everyMs);
  return <Charts split={split} period={period} title={`Usage of ${pluralOf(group)}`} />;
}

/** Use over time of one subject, such as `user:u-4711`. */
export function SubjectCharts({ subject, period, everyMs }: { subject: string } & Omit<Props, "group">) {
  const split = useLoad((signal) => loadSubject(period, subject, signal), `${period.key} ${subject}`, everyMs);
  return <Charts split={split} period={period} title="Usage" />;
}

function Charts({ split, period, title }: { split: Loaded<Split>; period: Period; title: string }) {
  return (
    <Pending of={split} what="figures" skeleton={<Skeletons />}>
      {(loaded) => (
        <div class="charts">
          <h2 class="hidden">{title}</h2>
          {CHARTS.map((chart) => (
            <SplitChart key={chart.title} {...chart} split={loaded} period={period} />
          ))}
        </div>
      )}
    </Pending>
  );
}

function SplitChart({
  title,
  figure,
  write,
  unit,
  split,
  period,
}: (typeof CHARTS)[number] & { split: Split } & Pick<Props, "period">) {
  const { at, rows, rest } = valuesOf(split, figure);
  const series: ChartSeries[] = rows.map((row, i) => ({ ...row, tone: TONES[i] ?? "rest" }));
  if (series.length === 0 || rest.some((value) => value > 0)) {
    series.push({
      label: series.length === 0 ? "All" : "Others",
      values: rest,
      tone: series.length === 0 ? "accent" : "rest",
    });
  }
  const total = split.all.totals ? figure(split.all.totals) : 0;
  return (
    <Chart
      title={title}
      summary={`${write(total)} ${unit}`}
      at={at}
      runs={period.to === undefined || period.to.getTime() > Date.now()}
      {...(split.ms <= HOUR && at.length < 2 ? {} : { zoom: zoomTo })}
      kind="bars"
      series={series}
      write={write}
      axis={short}
    />
  );
}

function Skeletons() {
  return (
    <div class="charts">
      {CHARTS.map(({ title }) => (
        <div key={title} class="card">
          <Skeleton tall="16.5rem" />
        </div>
      ))}
    </div>
  );
}
