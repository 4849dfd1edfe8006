import type { GetPerformanceResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import type { MetricsResponse } from "../../../gen/chorus/v1/generation_pb.js";
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
        const { at, ...by } = seriesOf(metrics, performance, ms);
        const total = performance?.total;
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
              summary={`${count(totals.inputTokens)} in, of them ${count(totals.cachedTokens)} cached; ${count(totals.outputTokens)} out`}
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
              summary={
                total?.latencyP50Ms === undefined || total.latencyP95Ms === undefined
                  ? performance
                    ? "No answers"
                    : "Shown for periods of up to 91 days"
                  : `half within ${duration(total.latencyP50Ms)}, 95 % within ${duration(total.latencyP95Ms)}`
              }
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
      }}
    </Pending>
  );
}

function Failures({ performance: { total } }: { performance: GetPerformanceResponse }) {
  const failures = total?.failures ?? [];
  const most = Number(failures[0]?.requests ?? 1n);
  return (
    <section class="failures">
      <h3>Failures by code</h3>
      {failures.length === 0 && (
        <p class="soft">None. What was refused before it was admitted (limits, credit, bad requests) is not counted.</p>
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
