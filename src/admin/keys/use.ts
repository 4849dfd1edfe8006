import { invalid } from "../../failure.ts";
import { orOverloaded, type Pool } from "../../store/pool.ts";
import { MS, pieces, startOf } from "../period.ts";
import { SUMS, type Sums, type Totals, totals } from "../usage/sums.ts";

/** Days that `readKeyUse` sums up, including today. */
const DAYS = 30;

/** Recent use of a key. */
export interface KeyUse {
  /** Start of the minute of the last admitted request; of its day, when the minutes have been deleted. Null: never. */
  lastUsedAt: Date | null;
  /** Start of the period of the sums. */
  from: Date;
  requests: bigint;
  failedRequests: bigint;
  inputTokens: bigint;
  outputTokens: bigint;
  /** Charged, in millionths of a credit. */
  charged: bigint;
}

/**
 * Reads the recent use of keys from the rollups. An index finds the rows of each key (100 keys take about 5 ms), so the
 * use of a key need not be written anywhere else.
 * @param now milliseconds since 1970
 * @returns use by identifier, for every given key
 * @throws Failure `overloaded` when the database is unavailable
 */
export async function readKeyUse(
  pool: Pool,
  workspaceId: string,
  keyIds: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, KeyUse>> {
  const from = new Date((Math.floor(now / MS.day) - DAYS + 1) * MS.day);
  const rows = await orOverloaded(
    pool.query<Omit<KeyUse, "from"> & { id: string }>(
      `select k.id, coalesce(minutes.start, days.start) as "lastUsedAt", sums.*
       from unnest($2::text[]) as k (id)
         left join lateral (
           select start from usage where workspace_id = $1 and unit = 'day' and key_id = k.id
           order by start desc limit 1) days on true
         left join lateral (
           select start from usage where workspace_id = $1 and unit = 'minute' and key_id = k.id
             and start >= days.start and start < days.start + interval '1 day'
           order by start desc limit 1) minutes on true
         cross join lateral (
           select coalesce(sum(requests), 0)::bigint as requests,
             coalesce(sum(failed_requests), 0)::bigint as "failedRequests",
             coalesce(sum(input_tokens), 0)::bigint as "inputTokens",
             coalesce(sum(output_tokens), 0)::bigint as "outputTokens",
             coalesce(sum(credits_micro), 0)::bigint as charged
           from usage where workspace_id = $1 and unit = 'day' and key_id = k.id and start >= $3) sums`,
      [workspaceId, keyIds, from],
    ),
  );
  return new Map(rows.map(({ id, ...use }) => [id, { ...use, from }]));
}

/** Use of one key over a period. */
export interface KeyTotals {
  keyId: string;
  /** Present name; may be empty. */
  keyName: string;
  totals: Totals;
}

const MAX_TOP = 100;
const TOP = 10;

/** Longest period that is summed up from hours, in milliseconds. Longer periods start with a whole day. */
const HOURS_MS = 3 * MS.day;

/**
 * Finds the keys of a workspace that used most credit over a period.
 * @param request.from inclusive, widened to the start of its hour; of its day when the period is longer than three days
 * @param request.to exclusive, widened to the end of its minute
 * @param request.count number of keys, 1 to 100; 0: 10
 * @throws Failure `invalid_request` with `from` or `page_size`; `overloaded` when the database is unavailable
 */
export async function readTopKeys(
  pool: Pool,
  { workspaceId, from, to, count }: { workspaceId: string; from: Date; to: Date; count: number },
): Promise<KeyTotals[]> {
  if (!Number.isInteger(count) || count < 0 || count > MAX_TOP) {
    throw invalid("page_size", `page_size must be 1 to ${MAX_TOP}, or 0 for ${TOP}.`);
  }
  if (!(from < to)) throw invalid("from", "The period must have a start before its end.");
  const interval = to.getTime() - from.getTime() > HOURS_MS ? "day" : "hour";
  const values: unknown[] = [workspaceId, count || TOP];
  const end = new Date(Math.ceil(to.getTime() / MS.minute) * MS.minute);
  const rows = pieces(interval, startOf(interval, from), end).map(
    ({ unit, start, end }) => `select * from usage
      where workspace_id = $1 and unit = '${unit}'
        and start >= $${values.push(start)} and start < $${values.push(end)}`,
  );
  const found = await orOverloaded(
    pool.query<Sums & { keyId: string; keyName: string }>(
      `select u.*, coalesce(k.name, '') as "keyName"
       from (select key_id as "keyId", ${SUMS} from (${rows.join(" union all ")}) as rows
             group by 1 order by micro desc, requests desc, 1 limit $2) u
         left join api_keys k on k.id = u."keyId" and k.workspace_id = $1
       order by micro desc, requests desc, 1`,
      values,
    ),
  );
  return found.map(({ keyId, keyName, ...sums }) => ({ keyId, keyName, totals: totals(sums) }));
}
