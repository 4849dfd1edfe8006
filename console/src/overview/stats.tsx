import type { GetPerformanceResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import type { MetricsResponse, MetricsTotals } from "../../../gen/chorus/v1/generation_pb.js";
import { count, duration, roundAmount, short } from "../format.ts";
import { Change, Stat } from "../parts/stat.tsx";
import { seriesOf } from "./series.ts";

/** Usage of a period. */
export interface Figures {
  readonly metrics: MetricsResponse;
  /** Undefined for periods that are too long for latencies. */
  readonly performance: GetPerformanceResponse | undefined;
  /** Width of a point, in milliseconds. */
  readonly ms: number;
}

interface Props {
  /** Undefined while it loads. */
  figures: Figures | undefined;
  /** The period before; undefined while it loads, or without one. */
  before: Figures | undefined;
}

/** The sums of the period as cards, compared with the period before. */
export function UsageStats({ figures, before }: Props) {
  const series = figures && seriesOf(figures);
  const [now, then] = [sumsOf(figures), sumsOf(before)];
  return (
    <dl class="stats" aria-label="Sums of the period">
      <Stat label="Requests" value={now && count(now.requests)} course={series?.requests}>
        <Change now={now?.requests} before={then?.requests} />
      </Stat>
      <Stat label="Spend" value={now && roundAmount(now.credits)} unit="credits" course={series?.credits}>
        <Change now={now?.credits} before={then?.credits} />
      </Stat>
      <Stat label="Tokens" value={now && short(now.tokens)} course={series?.output}>
        <Change now={now?.tokens} before={then?.tokens} />
      </Stat>
      <Stat
        label="Median latency"
        value={now && (now.p50 === undefined ? "–" : duration(now.p50))}
        course={series?.p50}
      >
        <Change now={now?.p50} before={then?.p50} more="worse" />
      </Stat>
      <Stat label="Failed" value={now && percent(now.failed)} course={series?.failed}>
        <Change now={now?.failed} before={then?.failed} more="worse" />
      </Stat>
    </dl>
  );
}

function sumsOf(figures: Figures | undefined) {
  const totals: Partial<MetricsTotals> | undefined = figures && (figures.metrics.totals ?? {});
  if (!figures || !totals) return undefined;
  const { requests = 0n, failedRequests = 0n, inputTokens = 0n, outputTokens = 0n, credits = 0 } = totals;
  const all = Number(requests + failedRequests);
  return {
    requests: Number(requests),
    credits,
    tokens: Number(inputTokens + outputTokens),
    p50: figures.performance?.total?.latencyP50Ms,
    failed: all === 0 ? 0 : Number(failedRequests) / all,
  };
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}
