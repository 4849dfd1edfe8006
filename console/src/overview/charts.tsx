import { ChartColumn, CircleCheck } from "lucide";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import type { GetPerformanceResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import type { MetricsTotals } from "../../../gen/chorus/v1/generation_pb.js";
import { count, duration, roundAmount, short, words } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Chart, type ChartSeries, TONES } from "../parts/chart.tsx";
import { Empty } from "../parts/empty.tsx";
import { Link } from "../parts/link.tsx";
import { type Period, spanOf, zoomTo } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { pathOf } from "../route.ts";
import { can } from "../session/session.ts";
import { type Series, seriesOf } from "./series.ts";
import type { Figures } from "./stats.tsx";

const HOUR = 3_600_000;
const TOO_LONG = "Shown for periods of up to 91 days";

interface Props {
  figures: Figures;
  period: Period;
}

/** Requests, spend, tokens, latency and failures over the period. */
export function Charts({ figures, period }: Props) {
  const { metrics, performance, ms } = figures;
  const { totals } = metrics;
  if (!totals || totals.requests + totals.failedRequests === 0n) {
    return (
      <Card>
        <Empty title="No requests in this period." icon={ChartColumn}>
          {can(KeyService.method.createKey) && (
            <p>
              <Link to={pathOf("keys")}>Create a key</Link> and call the service with it, or try the{" "}
              <Link to={pathOf("playground")}>playground</Link>.
            </p>
          )}
        </Empty>
      </Card>
    );
  }
  return (
    <div class="charts">
      <h2 class="hidden">Usage</h2>
      <UsageCharts series={seriesOf(figures)} totals={totals} ms={ms} period={period} performance={performance} />
    </div>
  );
}

interface UsageProps {
  series: Series;
  totals: MetricsTotals;
  performance: GetPerformanceResponse | undefined;
  /** Width of a point, in milliseconds. */
  ms: number;
  period: Period;
}

function UsageCharts({ series: { at, ...by }, totals, performance, ms, period }: UsageProps) {
  const runs = period.to === undefined || period.to.getTime() > Date.now();
  // One point cannot be divided further.
  const common = { at, runs, ...(ms <= HOUR && at.length < 2 ? {} : { zoom: zoomTo }) };
  return (
    <>
      <Chart
        title="Requests"
        summary={`${count(totals.requests)} answered, ${count(totals.failedRequests)} failed`}
        {...common}
        kind="bars"
        series={[
          { label: "Answered", values: by.requests, tone: "accent" },
          { label: "Failed", values: by.failed, tone: "bad" },
        ]}
        write={count}
        axis={short}
      />
      <Chart
        title="Spend"
        summary={`${roundAmount(totals.credits)} credits`}
        {...common}
        kind="bars"
        series={spendSeries(by)}
        write={roundAmount}
        axis={short}
      />
      <Chart
        title="Tokens"
        summary={tokenSummary(totals)}
        {...common}
        kind="bars"
        series={[
          { label: "Input", values: by.fresh, tone: "accent" },
          { label: "Cached input", values: by.cached, tone: "third" },
          { label: "Output", values: by.output, tone: "second" },
        ]}
        write={count}
        axis={short}
      />
      <Chart
        title="Latency"
        summary={latencySummary(performance)}
        {...common}
        kind="lines"
        series={[
          { label: "Median", values: by.p50, tone: "accent" },
          { label: "95 %", values: by.p95, tone: "second" },
        ]}
        write={duration}
        axis={duration}
      />
    </>
  );
}

/** Credits by level, where levels are known. */
function spendSeries({ levels, credits }: Omit<Series, "at">): ChartSeries[] {
  if (levels.length === 0) return [{ label: "Credits", values: credits, tone: "accent" }];
  return levels.map((level, at) => ({ ...level, tone: TONES[at] ?? "rest" }));
}

function tokenSummary({ inputTokens, cachedTokens, outputTokens }: MetricsTotals): string {
  return `${count(inputTokens)} in (${count(cachedTokens)} cached), ${count(outputTokens)} out`;
}

/** @param performance undefined: the period is too long for latencies */
function latencySummary(performance: GetPerformanceResponse | undefined): string {
  if (!performance) return TOO_LONG;
  const { latencyP50Ms, latencyP95Ms } = performance.total ?? {};
  if (latencyP50Ms === undefined || latencyP95Ms === undefined) return "No answers";
  return `median ${duration(latencyP50Ms)}, 95 % within ${duration(latencyP95Ms)}`;
}

interface FailureProps {
  /** Undefined while it loads. */
  figures: Figures | undefined;
  period: Period;
  /** Identifier of the only key that counts; empty for all. */
  keyId: string;
}

/** The number of failures by code. */
export function Failures({ figures, period, keyId }: FailureProps) {
  const performance = figures?.performance;
  const failures = performance?.total?.failures ?? [];
  const most = Number(failures[0]?.requests ?? 1n);
  return (
    <Card title="Failures by code" text="Refused requests (limits, credit, invalid requests) are not counted.">
      {performance && failures.length === 0 && <Empty title="No failures." icon={CircleCheck} />}
      {!figures && <Skeleton lines={3} />}
      {figures && !performance && <p class="soft">{TOO_LONG}</p>}
      <ul class="bars">
        {failures.map(({ code, requests }) => (
          <li key={code}>
            <Link to={pathOf("activity", { ...spanOf(period), key: keyId, outcome: code })}>{words(code)}</Link>
            <span class="bar">
              <span style={{ width: `${(Number(requests) / most) * 100}%` }} />
            </span>
            <span class="figure">{count(requests)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
