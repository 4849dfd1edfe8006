import type { GetPerformanceResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import type { MetricsResponse, MetricsTotals } from "../../../gen/chorus/v1/generation_pb.js";
import { count, duration, roundAmount, short, words } from "../format.ts";
import type { Loaded } from "../load.ts";
import { Chart } from "../parts/chart.tsx";
import { Empty } from "../parts/empty.tsx";
import { Link } from "../parts/link.tsx";
import { Pending } from "../parts/pending.tsx";
import { pathOf } from "../route.ts";
import { seriesOf } from "./series.ts";

interface Figures {
  metrics: MetricsResponse | undefined;
  performance: GetPerformanceResponse | undefined;
  /** Width of a point, in milliseconds. */
  ms: number;
}

/** Spend, requests, tokens, latency and failures over the period. */
export function Charts({ figures }: { figures: Loaded<Figures> }) {
  return (
    <Pending of={figures} what="usage">
      {({ metrics, performance, ms }) => {
        const totals = metrics?.totals;
        if (!metrics || !totals || totals.requests + totals.failedRequests === 0n) {
          return (
            <Empty title="No requests in this period.">
              <p>
                <Link to={pathOf("keys")}>Create a key</Link> and call the service with it, or try the{" "}
                <Link to={pathOf("playground")}>playground</Link>.
              </p>
            </Empty>
          );
        }
        return <UsageCharts metrics={metrics} totals={totals} performance={performance} ms={ms} />;
      }}
    </Pending>
  );
}

interface UsageProps extends Figures {
  metrics: MetricsResponse;
  totals: MetricsTotals;
}

function UsageCharts({ metrics, totals, performance, ms }: UsageProps) {
  const { at, ...by } = seriesOf(metrics, performance, ms);
  return (
    <div class="charts">
      <h2 class="hidden">Usage</h2>
      <Chart
        title="Requests"
        summary={`${count(totals.requests)} answered, ${count(totals.failedRequests)} failed`}
        at={at}
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
        at={at}
        kind="bars"
        series={[{ label: "Credits", values: by.credits, tone: "accent" }]}
        write={roundAmount}
        axis={short}
      />
      <Chart
        title="Tokens"
        summary={tokenSummary(totals)}
        at={at}
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
        at={at}
        kind="lines"
        series={[
          { label: "Median", values: by.p50, tone: "accent" },
          { label: "95 %", values: by.p95, tone: "second" },
        ]}
        write={duration}
        axis={duration}
      />
      {performance && <Failures performance={performance} />}
    </div>
  );
}

function tokenSummary({ inputTokens, cachedTokens, outputTokens }: MetricsTotals): string {
  return `${count(inputTokens)} in (${count(cachedTokens)} cached), ${count(outputTokens)} out`;
}

/** @param performance undefined: the period is too long for latencies */
function latencySummary(performance: GetPerformanceResponse | undefined): string {
  if (!performance) return "Shown for periods of up to 91 days";
  const { latencyP50Ms, latencyP95Ms } = performance.total ?? {};
  if (latencyP50Ms === undefined || latencyP95Ms === undefined) return "No answers";
  return `median ${duration(latencyP50Ms)}, 95 % within ${duration(latencyP95Ms)}`;
}

function Failures({ performance: { total } }: { performance: GetPerformanceResponse }) {
  const failures = total?.failures ?? [];
  const most = Number(failures[0]?.requests ?? 1n);
  return (
    <section class="failures">
      <h3>Failures by code</h3>
      {failures.length === 0 && (
        <p class="soft">None. Requests that were refused (limits, credit, invalid requests) are not counted.</p>
      )}
      <ul>
        {failures.map(({ code, requests }) => (
          <li key={code}>
            <Link to={pathOf("activity", { outcome: code })}>{words(code)}</Link>
            <span class="bar">
              <span style={{ width: `${(Number(requests) / most) * 100}%` }} />
            </span>
            <span class="figure">{count(requests)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
