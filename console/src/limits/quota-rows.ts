import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type Quota,
  type QuotasResponse,
  SpendPeriod,
  SpendPeriodSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { count, roundAmount } from "../format.ts";

/** One limit and its use. */
export interface QuotaRow {
  /** For example "Requests this minute". */
  readonly name: string;
  /** Undefined: there is no such limit. */
  readonly limit: number | undefined;
  readonly used: number;
  /** Undefined for running requests, which have no period. */
  readonly resetsAt: Timestamp | undefined;
  /** Anchor on the page of limits. */
  readonly anchor: string;
  write(value: number): string;
}

/** All limits: running requests, the three periods, and the configured spend limits. */
export function quotaRows({ windows, concurrentRequests, spendLimits }: QuotasResponse): QuotaRow[] {
  const row = (name: string, quota: Quota | undefined, resetsAt: Timestamp | undefined, anchor: string): QuotaRow => ({
    name,
    limit: quota?.limit === undefined ? undefined : Number(quota.limit),
    used: Number(quota?.used ?? 0),
    resetsAt,
    anchor,
    write: count,
  });
  return [
    row("Running requests", concurrentRequests, undefined, "now"),
    ...(["minute", "day", "month"] as const).flatMap((span) => {
      const window = windows?.[span];
      const when = span === "day" ? "today" : `this ${span}`;
      return [
        row(`Requests ${when}`, window?.requests, window?.resetsAt, span),
        row(`Input tokens ${when}`, window?.inputTokens, window?.resetsAt, span),
        row(`Output tokens ${when}`, window?.outputTokens, window?.resetsAt, span),
      ];
    }),
    ...spendLimits.map(({ period, limit, used, resetsAt }) => ({
      name: `Spending ${period === SpendPeriod.DAY ? "today" : `this ${wordOf(SpendPeriodSchema, period)}`}`,
      limit,
      used,
      resetsAt,
      anchor: "spend",
      write: roundAmount,
    })),
  ];
}
