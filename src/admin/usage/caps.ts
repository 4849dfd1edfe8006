import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CapActionSchema,
  CapFigureSchema,
  CapPeriodSchema,
  type CapQuotaSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../../contract/json-names.ts";
import type { Query } from "../../store/pool.ts";
import { next } from "../shared/period.ts";

/** A row of `cap_use()`. */
interface UseRow {
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
export async function readCapQuotas(
  query: Query,
  workspaceId: string,
  subjects: readonly string[],
  at: Date | null,
): Promise<MessageInitShape<typeof CapQuotaSchema>[]> {
  const rows = await query<UseRow>(
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
