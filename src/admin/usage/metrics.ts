import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  MetricsGroupBy,
  MetricsInterval,
  type MetricsRequest,
  type MetricsResponse,
  MetricsResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../admission/authenticate.ts";
import { invalid } from "../../failure.ts";
import type { Interval, Totals, Usage } from "./usage.ts";

const DEFAULT_PERIOD_MS = 30 * 86_400_000;

const INTERVALS: ReadonlyMap<MetricsInterval, Interval> = new Map([
  [MetricsInterval.MINUTE, "minute"],
  [MetricsInterval.HOUR, "hour"],
  [MetricsInterval.DAY, "day"],
  [MetricsInterval.MONTH, "month"],
]);

/**
 * Returns requests, tokens and credits of the caller's workspace over a period.
 * @param keyId counts only this key; undefined: all keys
 * @throws Failure `invalid_request` naming `from`, `interval` or `group_by`.
 */
export async function metrics(
  usage: Pick<Usage, "metrics">,
  request: MetricsRequest,
  caller: Pick<Caller, "workspaceId">,
  now: Date,
  keyId?: string,
): Promise<MetricsResponse> {
  const width = request.interval || MetricsInterval.DAY;
  const interval = INTERVALS.get(width);
  if (!interval) throw invalid("interval", 'interval must be "minute", "hour", "day" or "month".');
  if (MetricsGroupBy[request.groupBy] === undefined) throw invalid("group_by", 'group_by must be "none" or "key".');
  const to = request.endTime ? timestampDate(request.endTime) : now;
  const from = request.startTime ? timestampDate(request.startTime) : new Date(to.getTime() - DEFAULT_PERIOD_MS);
  const byKey = request.groupBy === MetricsGroupBy.KEY;
  const found = await usage.metrics({ workspaceId: caller.workspaceId, from, to, interval, byKey, keyId });
  return create(MetricsResponseSchema, {
    startTime: timestampFromDate(found.from),
    endTime: timestampFromDate(found.to),
    interval: width,
    totals: totalsFields(found.totals),
    series: found.series.map(({ start, keyId, ...point }) => ({
      start: timestampFromDate(start),
      ...(keyId === undefined ? {} : { keyId }),
      ...totalsFields(point),
    })),
  });
}

/** The fields that totals and points of a series share. */
export function totalsFields(totals: Totals) {
  return {
    requests: BigInt(totals.requests),
    failedRequests: BigInt(totals.failedRequests),
    inputTokens: BigInt(totals.inputTokens),
    outputTokens: BigInt(totals.outputTokens),
    cachedTokens: BigInt(totals.cachedTokens),
    credits: totals.credits,
  };
}
