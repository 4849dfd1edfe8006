import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Performance } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { Effort, type MetricsResponse } from "../../../gen/chorus/v1/generation_pb.js";
import type { Figures } from "./stats.tsx";

/** Values by interval. An interval without requests has zeros, and null as latency. */
export interface Series {
  /** Starts, in seconds. */
  readonly at: number[];
  readonly requests: number[];
  readonly failed: number[];
  readonly credits: number[];
  /** Credits of each level that was used; empty if none is known, as for a period that is too long. */
  readonly levels: { readonly label: string; readonly values: number[] }[];
  readonly fresh: number[];
  readonly cached: number[];
  readonly output: number[];
  readonly p50: (number | null)[];
  readonly p95: (number | null)[];
}

const LEVELS = [
  [Effort.LOW, "Low"],
  [Effort.MEDIUM, "Medium"],
  [Effort.HIGH, "High"],
] as const;

/** Fills in every interval of the period. */
export function seriesOf({ metrics: usage, performance, ms }: Figures): Series {
  const points = new Map(usage.series.map((point) => [millis(point.start), point]));
  const speeds = new Map(performance?.series.map((point) => [millis(point.start), point.performance]));
  const starts = startsOf(usage, ms);
  const levels = LEVELS.map(([level, label]) => ({
    label,
    values: starts.map((start) => creditsOf(speeds.get(start), level)),
  }));
  const of = (read: (point: MetricsResponse["series"][number]) => bigint | number) =>
    starts.map((start) => {
      const point = points.get(start);
      return point ? Number(read(point)) : 0;
    });
  const credits = of((point) => point.credits);
  return {
    at: starts.map((start) => start / 1000),
    requests: of((point) => point.requests),
    failed: of((point) => point.failedRequests),
    credits,
    levels: levels.some(isUsed) ? withRest(levels, credits).filter(isUsed) : [],
    fresh: of((point) => point.inputTokens - point.cachedTokens),
    cached: of((point) => point.cachedTokens),
    output: of((point) => point.outputTokens),
    p50: starts.map((start) => speeds.get(start)?.latencyP50Ms ?? null),
    p95: starts.map((start) => speeds.get(start)?.latencyP95Ms ?? null),
  };
}

function isUsed({ values }: Series["levels"][number]): boolean {
  return values.some((value) => value > 0);
}

function creditsOf(performance: Performance | undefined, level: Effort): number {
  return Number(performance?.levels.find((each) => each.level === level)?.credits ?? 0);
}

/** Adds what no level has, such as credits from before levels were counted. */
function withRest(levels: Series["levels"], credits: readonly number[]): Series["levels"] {
  const rest = credits.map((all, at) => levels.reduce((left, { values }) => left - (values[at] ?? 0), all));
  return [...levels, { label: "Level not known", values: rest.map((left) => (left < 1e-6 ? 0 : left)) }];
}

/** Starts of the intervals of a period, in milliseconds. @param ms width of an interval */
export function startsOf({ startTime, endTime }: Pick<MetricsResponse, "startTime" | "endTime">, ms: number): number[] {
  const [first, end] = [millis(startTime), millis(endTime)];
  return Array.from({ length: Math.max(0, Math.ceil((end - first) / ms)) }, (_, i) => first + i * ms);
}

/** Milliseconds since 1970; 0 without a time. */
export function millis(at: MetricsResponse["startTime"]): number {
  return at === undefined ? 0 : timestampDate(at).getTime();
}
