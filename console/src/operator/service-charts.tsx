import type {
  GetServiceUsageResponse,
  ServiceFigures,
  ServicePoint,
} from "../../../gen/chorus/admin/v1/operations_pb.js";
import { count, roundAmount, short } from "../format.ts";
import { millis, startsOf } from "../overview/series.ts";
import { Chart, type ChartProps } from "../parts/chart.tsx";
import { type Period, zoomTo } from "../parts/period.tsx";
import { dollars } from "./money.ts";

interface Props {
  usage: GetServiceUsageResponse;
  /** Width of a point, in milliseconds. */
  ms: number;
  period: Period;
}

/** Requests, and revenue beside the cost of models, over the period. */
export function ServiceCharts({ usage, ms, period }: Props) {
  const { totals } = usage;
  const { of, common } = pointsOf(usage, ms, period);
  return (
    <div class="charts">
      <h2 class="hidden">Use over time</h2>
      <Chart
        title="Requests"
        summary={`${count(totals?.requests ?? 0)} answered, ${count(totals?.failedRequests ?? 0)} failed`}
        {...common}
        kind="bars"
        series={[
          { label: "Answered", values: of(({ requests }) => Number(requests)), tone: "accent" },
          { label: "Failed", values: of(({ failedRequests }) => Number(failedRequests)), tone: "bad" },
        ]}
        write={count}
        axis={short}
      />
      <Money usage={usage} of={of} common={common} />
      <Chart
        title="Calls of models"
        summary={`${count(totals?.calls ?? 0)} calls, ${count(totals?.failedCalls ?? 0)} failed`}
        {...common}
        kind="bars"
        series={[
          { label: "Answered", values: of(({ calls, failedCalls }) => Number(calls - failedCalls)), tone: "accent" },
          { label: "Failed", values: of(({ failedCalls }) => Number(failedCalls)), tone: "bad" },
        ]}
        write={count}
        axis={short}
      />
    </div>
  );
}

interface MoneyProps {
  usage: GetServiceUsageResponse;
  of: (read: (figures: ServiceFigures) => number) => number[];
  common: Pick<ChartProps, "at" | "runs" | "zoom">;
}

/** Revenue and cost: in one chart if the price of a credit is known, else in two. */
export function Money({ usage: { totals, usdPerCredit }, of, common }: MoneyProps) {
  const credits = Number(totals?.credits ?? 0);
  const cost = totals?.costUsd ?? 0;
  const costs = { label: "Cost of models", values: of(({ costUsd }) => costUsd), tone: "second" } as const;
  if (usdPerCredit !== undefined) {
    const revenue = of((point) => Number(point.credits) * usdPerCredit);
    return (
      <Chart
        title="Revenue and cost"
        summary={`${dollars(credits * usdPerCredit)} revenue, ${dollars(cost)} for models`}
        {...common}
        kind="lines"
        series={[{ label: "Revenue", values: revenue, tone: "accent" }, costs]}
        write={dollars}
        axis={dollars}
      />
    );
  }
  return (
    <>
      <Chart
        title="Revenue"
        summary={`${roundAmount(credits)} credits`}
        {...common}
        kind="bars"
        series={[{ label: "Credits", values: of((point) => Number(point.credits)), tone: "accent" }]}
        write={roundAmount}
        axis={short}
      />
      <Chart
        title="Cost of models"
        summary={dollars(cost)}
        {...common}
        kind="bars"
        series={[costs]}
        write={dollars}
        axis={dollars}
      />
    </>
  );
}

/** Every interval of the period; one without use has zeros. @param ms width of an interval, in milliseconds */
export function pointsOf(usage: GetServiceUsageResponse, ms: number, period: Period) {
  const known = new Map(usage.points.map((point) => [millis(point.start), point]));
  const starts = startsOf(usage, ms);
  const each = (read: (point: ServicePoint) => number) =>
    starts.map((start) => {
      const point = known.get(start);
      return point ? read(point) : 0;
    });
  const common = {
    at: starts.map((start) => start / 1_000),
    runs: period.to === undefined || period.to.getTime() > Date.now(),
    ...(starts.length < 2 ? {} : { zoom: zoomTo }),
  };
  return {
    common,
    each,
    of: (read: (figures: ServiceFigures) => number) => each(({ figures }) => (figures ? read(figures) : 0)),
  };
}
