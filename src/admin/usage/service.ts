import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  GetPerformanceResponseSchema,
  GetQuotasResponseSchema,
  GetUsageResponseSchema,
  ListTopKeysResponseSchema,
  type PerformanceSchema,
  type UsageService,
} from "../../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsInterval, MetricsRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { Rates } from "../../admission/price.ts";
import { invalid } from "../../failure.ts";
import { readTimestamp } from "../read-field.ts";
import type { Admin } from "../service.ts";
import type { Workspaces } from "../workspaces/workspaces.ts";
import { metrics, totalsFields } from "./metrics.ts";
import type { Performance, PerformanceInterval } from "./performance.ts";
import { quotas } from "./quotas.ts";
import type { Usage } from "./usage.ts";

export type UsageAdmin = Admin<typeof UsageService>;

const DAY_MS = 86_400_000;

const INTERVALS: ReadonlyMap<MetricsInterval, PerformanceInterval> = new Map([
  [MetricsInterval.UNSPECIFIED, "hour"],
  [MetricsInterval.MINUTE, "minute"],
  [MetricsInterval.HOUR, "hour"],
  [MetricsInterval.DAY, "day"],
]);

/** Returns the usage of a workspace to operators and its owner, with the figures of `/v1/metrics` and `/v1/quotas`. */
export function createUsageAdmin(usage: Usage, workspaces: Workspaces, rates: () => Rates): UsageAdmin {
  return {
    async getUsage({ workspace, startTime, endTime, interval, groupBy, keyId }, actor) {
      const { id, name } = await workspaces.get(actor, workspace);
      const request = create(MetricsRequestSchema, {
        interval,
        groupBy,
        ...(startTime && { startTime }),
        ...(endTime && { endTime }),
      });
      return create(GetUsageResponseSchema, {
        workspace: name,
        usage: await metrics(usage, request, { workspaceId: id }, new Date(), keyId || undefined),
      });
    },
    async getQuotas({ workspace }, actor) {
      const { id, name } = await workspaces.get(actor, workspace);
      return create(GetQuotasResponseSchema, {
        quotas: await quotas(usage, { workspaceId: id, workspace: name }),
        rates: rates(),
      });
    },
    async getPerformance({ workspace, keyId, ...request }, actor) {
      const { id } = await workspaces.get(actor, workspace);
      const interval = INTERVALS.get(request.interval);
      if (!interval) throw invalid("interval", 'interval must be "minute", "hour" or "day".');
      const period = periodOf(request, DAY_MS);
      const found = await usage.performance({ workspaceId: id, ...period, interval, keyId: keyId || undefined });
      return create(GetPerformanceResponseSchema, {
        startTime: timestampFromDate(found.from),
        endTime: timestampFromDate(found.to),
        total: performanceMessage(found.total),
        series: found.series.map(({ start, ...performance }) => ({
          start: timestampFromDate(start),
          performance: performanceMessage(performance),
        })),
      });
    },
    async listTopKeys({ workspace, pageSize, ...request }, actor) {
      const { id } = await workspaces.get(actor, workspace);
      const keys = await usage.topKeys({ workspaceId: id, ...periodOf(request, 30 * DAY_MS), count: pageSize });
      return create(ListTopKeysResponseSchema, {
        keys: keys.map(({ totals, ...key }) => ({ ...key, totals: totalsFields(totals) })),
      });
    },
  };
}

/** @param defaultMs length of the period when the request gives no start, in milliseconds */
function periodOf(
  { startTime, endTime }: { startTime?: Timestamp | undefined; endTime?: Timestamp | undefined },
  defaultMs: number,
): { from: Date; to: Date } {
  const end = readTimestamp("to", endTime) ?? new Date();
  return { from: readTimestamp("from", startTime) ?? new Date(end.getTime() - defaultMs), to: end };
}

function performanceMessage({ p50, p95, failures }: Performance): MessageInitShape<typeof PerformanceSchema> {
  return {
    ...(p50 === undefined ? {} : { latencyP50Ms: p50 }),
    ...(p95 === undefined ? {} : { latencyP95Ms: p95 }),
    // Every failure after admission has a code, which equals its kind.
    failures: failures.map(({ kind, requests }) => ({ code: kind, requests })),
  };
}
