import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  MetricsGroupBy,
  MetricsInterval,
  type MetricsRequest,
  type MetricsResponse,
  MetricsResponseSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../admission/keys.ts";
import type { Usage, UsageFigures } from "../admission/usage.ts";
import { invalid } from "../failure.ts";

const DAY_MS = 86_400_000;
/** Most points that one request may ask for, counted for one key. */
const MAX_POINTS = 5_000;

/** Interval, its name in the store, and its least width in milliseconds. */
const INTERVALS = {
  [MetricsInterval.UNSPECIFIED]: { interval: MetricsInterval.DAY, unit: "day", ms: DAY_MS },
  [MetricsInterval.MINUTE]: { interval: MetricsInterval.MINUTE, unit: "minute", ms: 60_000 },
  [MetricsInterval.HOUR]: { interval: MetricsInterval.HOUR, unit: "hour", ms: 3_600_000 },
  [MetricsInterval.DAY]: { interval: MetricsInterval.DAY, unit: "day", ms: DAY_MS },
  [MetricsInterval.MONTH]: { interval: MetricsInterval.MONTH, unit: "month", ms: 28 * DAY_MS },
} as const;

/**
 * Token use of the caller's workspace over a period.
 * @throws Failure invalid_request naming `from`, `to`, `interval` or `group_by`.
 */
export async function metrics(
  usage: Usage,
  request: MetricsRequest,
  caller: Caller,
  now: Date,
): Promise<MetricsResponse> {
  const width = INTERVALS[request.interval];
  if (!width) throw invalid("interval", 'interval must be "minute", "hour", "day" or "month".');
  if (MetricsGroupBy[request.groupBy] === undefined) throw invalid("group_by", 'group_by must be "none" or "key".');
  const to = time("to", request.to) ?? now;
  const from = floor(time("from", request.from) ?? new Date(to.getTime() - 30 * DAY_MS), width.unit);
  if (from >= to) throw invalid("from", "from must be before to.");
  if ((to.getTime() - from.getTime()) / width.ms > MAX_POINTS) {
    throw invalid(
      "interval",
      `The period has more than ${MAX_POINTS.toLocaleString("en")} intervals. Ask for a wider interval or a shorter period.`,
    );
  }
  const byKey = request.groupBy === MetricsGroupBy.KEY;
  const { totals, series } = await usage.metrics({
    workspaceId: caller.workspaceId,
    from,
    to,
    interval: width.unit,
    byKey,
  });
  return create(MetricsResponseSchema, {
    from: timestampFromDate(from),
    to: timestampFromDate(to),
    interval: width.interval,
    totals: figures(totals),
    series: series.map(({ start, keyId, ...point }) => ({
      start: timestampFromDate(start),
      ...(keyId === undefined ? {} : { keyId }),
      ...figures(point),
    })),
  });
}

function time(field: string, value: Timestamp | undefined): Date | undefined {
  if (!value) return undefined;
  const date = timestampDate(value);
  // Outside of these years a time is a mistake, and the store's own range ends somewhere.
  if (!(date.getTime() >= Date.UTC(2000) && date.getTime() < Date.UTC(2200))) {
    throw invalid(field, `${field} must be a time between the years 2000 and 2200.`);
  }
  return date;
}

function floor(date: Date, unit: "minute" | "hour" | "day" | "month"): Date {
  if (unit === "month") return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1));
  const ms = { minute: 60_000, hour: 3_600_000, day: DAY_MS }[unit];
  return new Date(Math.floor(date.getTime() / ms) * ms);
}

function figures(of: UsageFigures) {
  return {
    requests: BigInt(of.requests),
    failedRequests: BigInt(of.failedRequests),
    inputTokens: BigInt(of.inputTokens),
    outputTokens: BigInt(of.outputTokens),
    cachedTokens: BigInt(of.cachedTokens),
    credits: of.credits,
  };
}
