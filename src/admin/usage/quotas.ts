import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CapActionSchema,
  CapFigureSchema,
  CapPeriodSchema,
  type CapQuotaSchema,
  type QuotaSchema,
  type QuotasResponse,
  QuotasResponseSchema,
  type QuotaWindowSchema,
  type SpendLimitSchema,
  SpendPeriodSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../admission/authenticate.ts";
import type { Clock } from "../../contract/clock.ts";
import { numberOf } from "../../contract/json-names.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { next } from "../shared/period.ts";
import { credits } from "./usage.ts";

/** Use of one calendar period, with the limits and the credit of the workspace. */
interface Row {
  at: Date;
  unit: "minute" | "day" | "week" | "month";
  start: Date;
  requests: bigint;
  input: bigint;
  output: bigint;
  spent: bigint;
  tier: string;
  limits: Record<string, number | null>;
  spend_limits: Record<string, number | null>;
  running: number;
  balance: bigint;
  held: bigint;
}

export type ReadQuotas = ReturnType<typeof createQuotas>;

/**
 * Creates the report of the present limits and their use. What requests on other replicas use is at most two seconds
 * old.
 * @param report tells the database what a workspace's requests on this replica use; see `Admission.report`
 * @returns a function that makes the report. It lists the caps of the given subjects
 */
export function createQuotas(pool: Pool, report: (workspaceId: string) => Promise<void>, clock?: Clock) {
  return async (
    { workspaceId, workspace }: Pick<Caller, "workspaceId" | "workspace">,
    subjects: readonly string[] = [],
  ): Promise<QuotasResponse> => {
    await report(workspaceId);
    const rows = await pool.query<Row>(
      `select t.at, p.unit, p.start, p.requests, p.input_tokens as input, p.output_tokens as output,
         p.spent_micro as spent, coalesce(a.tier, 'free') as tier, coalesce(a.limits, '{}') as limits,
         coalesce(a.spend_limits, '{}') as spend_limits, u.running, u.held,
         coalesce(a.granted_micro + a.purchased_micro, 0) as balance
       from (select coalesce($2, clock_timestamp()) as at) t
       cross join lateral current_periods($1, t.at) p cross join in_use($1) u
       left join accounts a on a.workspace_id = $1`,
      [workspaceId, clock ? new Date(clock()) : null],
    );
    const at = (unit: Row["unit"]): Row => {
      const row = rows.find((row) => row.unit === unit);
      if (!row) throw new TypeError(`current_periods returned no ${unit}.`);
      return row;
    };
    const { tier, at: asOf, limits, running, balance, held } = at("minute");
    const now = clock ? new Date(clock()) : null;
    const caps = subjects.length > 0 ? await readCapQuotas(pool.query, workspaceId, subjects, now) : [];
    return create(QuotasResponseSchema, {
      workspace,
      tier,
      asOf: timestampFromDate(asOf),
      windows: { minute: window(at("minute")), day: window(at("day")), month: window(at("month")) },
      concurrentRequests: quota(limits.concurrent_requests, BigInt(running)),
      credit: { balance: credits(balance), held: credits(held), available: credits(balance - held) },
      spendLimits: [at("day"), at("week"), at("month")].flatMap(spendLimit),
      caps,
    });
  };
}

/** Use of the calendar window (UTC) of a row. Output tokens are counted at settlement, the others at admission. */
function window({ unit, start, limits, requests, input, output }: Row): MessageInitShape<typeof QuotaWindowSchema> {
  return {
    resetsAt: timestampFromDate(next(unit, start)),
    requests: quota(limits[`requests_per_${unit}`], requests),
    inputTokens: quota(limits[`input_tokens_per_${unit}`], input),
    outputTokens: quota(limits[`output_tokens_per_${unit}`], output),
  };
}

/** What remains is never negative: a limit can be set below its use. */
function quota(limit: number | null | undefined, used: bigint): MessageInitShape<typeof QuotaSchema> {
  if (limit === null || limit === undefined) return { used };
  const left = BigInt(limit) - used;
  return { limit: BigInt(limit), used, remaining: left > 0n ? left : 0n };
}

/** The limit on the purchased credit spent in the period of a row, if there is one. */
function spendLimit({ unit, start, spend_limits, spent }: Row): MessageInitShape<typeof SpendLimitSchema>[] {
  const micro = spend_limits[unit] ?? null;
  if (micro === null) return [];
  const remaining = Math.max(0, micro - Number(spent)) / 1e6;
  const period = numberOf(SpendPeriodSchema, unit);
  const resetsAt = timestampFromDate(next(unit, start));
  return [{ period, limit: micro / 1e6, used: credits(spent), remaining, resetsAt }];
}

/** A row of `cap_use()`. */
interface CapRow {
  subject: string;
  figure: string;
  period: string;
  amount: bigint;
  action: string;
  used: bigint;
  held: bigint;
  taken: bigint;
  start: Date | null;
}

/** Reads the caps of subjects with their use. @param at the time of the workspace's windows; null: now */
async function readCapQuotas(
  query: Query,
  workspaceId: string,
  subjects: readonly string[],
  at: Date | null,
): Promise<MessageInitShape<typeof CapQuotaSchema>[]> {
  const rows = await query<CapRow>(
    `select s.subject, u.*, case when u.period in ('minute', 'day', 'week', 'month')
       then date_trunc(u.period, p.at, 'UTC') end as start
     from unnest($2::text[]) with ordinality as s (subject, place)
     cross join periods_at($1, coalesce($3, clock_timestamp())) p
     cross join lateral cap_use($1, s.subject, p.at) u
     order by s.place, u.figure, u.period, u.action`,
    [workspaceId, subjects, at],
  );
  return rows.map(({ subject, figure, period, amount, action, used: spent, held, taken, start }) => {
    const unit = figure === "credits" ? 1e6 : 1;
    const used = spent + held + taken;
    const left = amount - used;
    return {
      subject,
      figure: numberOf(CapFigureSchema, figure),
      ...(period === "" ? {} : { period: numberOf(CapPeriodSchema, period) }),
      limit: Number(amount) / unit,
      used: Number(used) / unit,
      remaining: Number(left > 0n ? left : 0n) / unit,
      action: numberOf(CapActionSchema, action),
      ...(start ? { resetsAt: timestampFromDate(next(period as "day", start)) } : {}),
    };
  });
}
