import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { LimitName, LimitNameSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import {
  type Quota,
  type QuotasResponse,
  SpendPeriod,
  SpendPeriodSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { numberOf, wordOf } from "../../../src/contract/json-names.ts";
import { amount, count, roundAmount } from "../format.ts";

/** Unit of a window. */
export type Span = "minute" | "day" | "week" | "month";

/** One limit and its use. */
export interface LimitRow {
  /** For example "Requests this minute". */
  readonly name: string;
  /** Name of the rate limit; `spend` has the period of a spend limit in its place. */
  readonly rate: LimitName;
  readonly spend: SpendPeriod;
  /** Undefined: there is no such limit. */
  readonly limit: number | undefined;
  /** Undefined for spending that is not limited, which is not reported. */
  readonly used: number | undefined;
  /** Undefined for running requests, which have no window. */
  readonly span: Span | undefined;
  readonly resetsAt: Timestamp | undefined;
  /** Anchor on the page of limits. */
  readonly anchor: string;
  readonly writeUsed: (value: number) => string;
  readonly writeLimit: (value: number) => string;
}

const KINDS = [
  ["Requests", "requests"],
  ["Input tokens", "inputTokens"],
  ["Output tokens", "outputTokens"],
] as const;

const SPEND_PERIODS = [SpendPeriod.DAY, SpendPeriod.WEEK, SpendPeriod.MONTH];

/** All limits: spend limits, whether they are set or not, running requests, and the windows of rate limits. */
export function limitRows(quotas: QuotasResponse): LimitRow[] {
  const rate = (quota: Quota | undefined) => ({
    spend: SpendPeriod.UNSPECIFIED,
    limit: quota?.limit === undefined ? undefined : Number(quota.limit),
    used: Number(quota?.used ?? 0),
    ...{ writeUsed: count, writeLimit: count },
  });
  return [
    ...SPEND_PERIODS.map((period) => spendRow(quotas, period)),
    {
      ...rate(quotas.concurrentRequests),
      ...{ name: "Running requests", rate: LimitName.CONCURRENT_REQUESTS, anchor: "now" },
      ...{ span: undefined, resetsAt: undefined },
    },
    ...(["minute", "day", "month"] as const).flatMap((span) =>
      KINDS.map(([title, kind]) => ({
        ...rate(quotas.windows?.[span]?.[kind]),
        name: `${title} ${when(span)}`,
        rate: numberOf(LimitNameSchema, `${title.toLowerCase().replace(" ", "_")}_per_${span}`),
        ...{ span, anchor: span, resetsAt: quotas.windows?.[span]?.resetsAt },
      })),
    ),
  ];
}

function spendRow({ spendLimits }: QuotasResponse, period: SpendPeriod): LimitRow {
  const span = wordOf(SpendPeriodSchema, period) as Span;
  const found = spendLimits.find((limit) => limit.period === period);
  return {
    name: `Spending ${when(span)}`,
    rate: LimitName.UNSPECIFIED,
    spend: period,
    limit: found?.limit,
    used: found?.used,
    span,
    resetsAt: found?.resetsAt,
    anchor: "spend",
    ...{ writeUsed: roundAmount, writeLimit: amount },
  };
}

function when(span: Span): string {
  return span === "day" ? "today" : `this ${span}`;
}
