import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  GetPerformanceResponseSchema,
  GetQuotasResponseSchema,
  GetUsageResponseSchema,
  ListTopKeysResponseSchema,
  type PerformanceSchema,
  type UsageService,
} from "../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsInterval, MetricsRequestSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Performance, PerformanceInterval } from "../accounts/performance.ts";
import type { Usage } from "../accounts/usage.ts";
import type { Workspaces } from "../accounts/workspaces.ts";
import type { Rates } from "../admission/price.ts";
import { invalid } from "../failure.ts";
import type { Admin } from "./admin.ts";
import { figures, metrics } from "./metrics.ts";
import { quotas } from "./quotas.ts";
import { readTimestamp } from "./timestamp.ts";

export type UsageAdmin = Admin<typeof UsageService>;

const DAY_MS = 86_400_000;

const INTERVALS: ReadonlyMap<MetricsInterval, PerformanceInterval> = new Map([
  [MetricsInterval.UNSPECIFIED, "hour"],
  [MetricsInterval.MINUTE, "minute"],
  [MetricsInterval.HOUR, "hour"],
  [MetricsInterval.DAY, "day"],
]);

/** What a workspace used, for operators and its owner; the figures are those of `/v1/metrics` and `/v1/quotas`. */
export function createUsageAdmin(usage: Usage, workspaces: Workspaces, rates: Rates): UsageAdmin {
  return {
    async getUsage({ workspace, from, to, interval, groupBy, keyId }, actor) {
      const { id, name } = await workspaces.get(actor, workspace);
      const request = create(MetricsRequestSchema, { interval, groupBy, ...(from && { from }), ...(to && { to }) });
      return create(GetUsageResponseSchema, {
        workspace: name,
        usage: await metrics(usage, request, { workspaceId: id }, new Date(), keyId || undefined),
      });
    },
    async getQuotas({ workspace }, actor) {
      const { id, name } = await workspaces.get(actor, workspace);
      return create(GetQuotasResponseSchema, {
        quotas: await quotas(usage, { workspaceId: id, workspace: name }),
        rates,
      });
    },
    async getPerformance({ workspace, keyId, ...request }, actor) {
      const { id } = await workspaces.get(actor, workspace);
      const interval = INTERVALS.get(request.interval);
      if (!interval) throw invalid("interval", 'interval must be "minute", "hour" or "day".');
      const period = periodOf(request, DAY_MS);
      const found = await usage.performance({ workspaceId: id, ...period, interval, keyId: keyId || undefined });
      return create(GetPerformanceResponseSchema, {
        from: timestampFromDate(found.from),
        to: timestampFromDate(found.to),
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
        keys: keys.map(({ totals, ...key }) => ({ ...key, totals: figures(totals) })),
      });
    },
  };
}

/** @param defaultMs length of a period whose start is not given */
function periodOf(
  { from, to }: { from?: Timestamp | undefined; to?: Timestamp | undefined },
  defaultMs: number,
): { from: Date; to: Date } {
  const end = readTimestamp("to", to) ?? new Date();
  return { from: readTimestamp("from", from) ?? new Date(end.getTime() - defaultMs), to: end };
}

function performanceMessage({ p50, p95, failures }: Performance): MessageInitShape<typeof PerformanceSchema> {
  return {
    ...(p50 === undefined ? {} : { latencyP50Ms: p50 }),
    ...(p95 === undefined ? {} : { latencyP95Ms: p95 }),
    // What fails after it was admitted has a code, and that is the name of its kind.
    failures: failures.map(({ kind, requests }) => ({ code: kind, requests })),
  };
}
