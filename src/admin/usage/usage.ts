import { invalid } from "../../failure.ts";
import { orOverloaded, type Pool } from "../../store/pool.ts";
import { type KeyTotals, readTopKeys } from "../keys/use.ts";
import { type Interval, MS, next, pieces, points, startOf } from "../period.ts";
import { type PerformanceRequest, type PerformanceSeries, readPerformance } from "./performance.ts";
import { credits, plus, SUMS, type Sums, type Totals, totals, ZERO } from "./sums.ts";

export type { Interval } from "../period.ts";
export type { Totals } from "./sums.ts";

/** The used part of a limit, in the unit of the limit. */
export interface Use {
  /** Null: no limit. */
  limit: number | null;
  used: number;
}

/** Use of the current calendar window (UTC). */
export interface Window {
  /** Start of the next window. */
  resetsAt: Date;
  /** Admitted requests. */
  requests: Use;
  /** Their input tokens, counted at admission. */
  inputTokens: Use;
  /** Output tokens, counted at settlement. */
  outputTokens: Use;
}

type SpendPeriod = "day" | "week" | "month";

/** Limits in force and their use. Amounts are in credits, exact to one millionth. */
export interface Quotas {
  tier: string;
  /** Time of the figures, by the database clock, which admission uses too. */
  asOf: Date;
  windows: { minute: Window; day: Window; month: Window };
  /** Requests in flight on all replicas. */
  concurrentRequests: Use;
  credit: { balance: number; held: number; available: number };
  /** Limits on the purchased credit spent in a period, shortest period first. */
  spendLimits: { period: SpendPeriod; limit: number; used: number; resetsAt: Date }[];
}

export interface Metrics {
  /** Start, widened to the start of its interval. */
  from: Date;
  /** End, widened to the end of its minute. */
  to: Date;
  totals: Totals;
  /** Oldest first, without intervals that have no requests. `keyId` is set when the series is split by key. */
  series: (Totals & { start: Date; keyId?: string })[];
}

export interface Usage {
  /**
   * Reads the present limits and use of a workspace. What its requests on other replicas use is at most two seconds
   * old. @throws Failure `overloaded` when the database is unavailable
   */
  quotas(workspaceId: string): Promise<Quotas>;
  /**
   * Sums up the use of a workspace over a period, by the time at which each request was admitted.
   * @param request.from inclusive
   * @param request.to exclusive
   * @param request.keyId counts only this key; undefined: all keys
   * @throws Failure `invalid_request` with `from` for an empty period, or with `interval` for more than 5,000 points;
   * `overloaded` when the database is unavailable
   */
  metrics(request: {
    workspaceId: string;
    from: Date;
    to: Date;
    interval: Interval;
    byKey: boolean;
    keyId?: string | undefined;
  }): Promise<Metrics>;
  /** Latency and failures of a workspace; see `readPerformance`. */
  performance(request: PerformanceRequest): Promise<PerformanceSeries>;
  /** The keys that used most credit; see `readTopKeys`. */
  topKeys(request: { workspaceId: string; from: Date; to: Date; count: number }): Promise<KeyTotals[]>;
}

const MAX_POINTS = 5_000;

/**
 * Reads use from the tables `accounts`, `periods` and `usage`. These hold sums, so the time of a report does not grow
 * with the number of requests (docs/decisions/usage.md).
 * @param clock returns milliseconds since 1970, for tests; undefined: the clock of the database
 * @param report tells the database what a workspace's requests on this replica use; see `Admission.report`
 */
export function createUsage(
  pool: Pool,
  clock?: () => number,
  report: (workspaceId: string) => Promise<void> = async () => undefined,
): Usage {
  return {
    async quotas(workspaceId) {
      await report(workspaceId);
      const rows = await orOverloaded(
        pool.query<QuotaRow>(
          `select t.at, p.unit, p.start, p.requests, p.input_tokens as input, p.output_tokens as output,
             p.spent_micro as spent, coalesce(a.tier, 'free') as tier, coalesce(a.limits, '{}') as limits,
             coalesce(a.spend_limits, '{}') as spend_limits, u.running, u.held,
             coalesce(a.granted_micro + a.purchased_micro, 0) as balance
           from (select coalesce($2, clock_timestamp()) as at) t
           cross join lateral current_periods($1, t.at) p cross join in_use($1) u
           left join accounts a on a.workspace_id = $1`,
          [workspaceId, clock ? new Date(clock()) : null],
        ),
      );
      return quotasOf(new Map(rows.map((row) => [row.unit, row])));
    },

    async metrics({ workspaceId, from: start, to: end, interval, byKey, keyId }) {
      const from = startOf(interval, start);
      if (!(start < end)) throw invalid("from", "The period must have a start before its end.");
      if (points(interval, from, end) > MAX_POINTS) throw tooMany();
      const to = new Date(Math.ceil(end.getTime() / MS.minute) * MS.minute);
      const values: unknown[] = [workspaceId];
      const ofKey = keyId === undefined ? "" : `and key_id = $${values.push(keyId.replaceAll("\0", ""))}`;
      const sums = pieces(interval, from, to).map(({ unit, start, end }) => {
        // The index returns rows of the interval's own unit in order. The result of date_trunc would have to be sorted.
        const point = unit === interval ? "start" : `date_trunc('${interval}', start, 'UTC')`;
        return `(select ${point} as start, ${byKey ? "key_id" : "null"} as key_id, ${SUMS} from usage
          where workspace_id = $1 and unit = '${unit}' ${ofKey}
            and start >= $${values.push(start)} and start < $${values.push(end)}
          group by 1, 2 order by 1, 2 limit ${MAX_POINTS + 1})`;
      });
      const rows = mergePoints(
        await orOverloaded(
          pool.query<PointRow>(`select * from (${sums.join(" union all ")}) as u order by 1, 2`, values),
        ),
      );
      if (rows.length > MAX_POINTS) throw tooMany();
      const series = rows.map((row) => ({
        start: row.start,
        ...(row.key_id === null ? {} : { keyId: row.key_id }),
        ...totals(row),
      }));
      return { from, to, totals: totals(rows.reduce(plus, ZERO)), series };
    },

    performance: (request) => readPerformance(pool, request),
    topKeys: (request) => readTopKeys(pool, request),
  };
}

interface QuotaRow {
  at: Date;
  unit: "minute" | "day" | "week" | "month";
  start: Date;
  requests: bigint;
  input: bigint;
  output: bigint;
  spent: bigint;
  tier: string;
  limits: Record<string, number | null>;
  spend_limits: Partial<Record<SpendPeriod, number | null>>;
  running: number;
  balance: bigint;
  held: bigint;
}

function quotasOf(periods: ReadonlyMap<string, QuotaRow>): Quotas {
  const at = (unit: QuotaRow["unit"]): QuotaRow => {
    const row = periods.get(unit);
    if (!row) throw new TypeError(`current_periods returned no ${unit}.`);
    return row;
  };
  const { tier, at: asOf, limits, spend_limits, running, balance, held } = at("minute");
  const window = (unit: "minute" | "day" | "month"): Window => {
    const { start, requests, input, output } = at(unit);
    const use = (name: string, used: bigint): Use => ({
      limit: limits[`${name}_per_${unit}`] ?? null,
      used: Number(used),
    });
    return {
      resetsAt: next(unit, start),
      requests: use("requests", requests),
      inputTokens: use("input_tokens", input),
      outputTokens: use("output_tokens", output),
    };
  };
  return {
    tier,
    asOf,
    windows: { minute: window("minute"), day: window("day"), month: window("month") },
    concurrentRequests: { limit: limits.concurrent_requests ?? null, used: running },
    credit: { balance: credits(balance), held: credits(held), available: credits(balance - held) },
    spendLimits: (["day", "week", "month"] as const).flatMap((period) => {
      const limit = spend_limits[period] ?? null;
      if (limit === null) return [];
      const { start, spent } = at(period);
      return [{ period, limit: limit / 1e6, used: credits(spent), resetsAt: next(period, start) }];
    }),
  };
}

interface PointRow extends Sums {
  start: Date;
  key_id: string | null;
}

/** Merges consecutive rows of the same point, which different pieces of the period contribute. */
function mergePoints(rows: PointRow[]): PointRow[] {
  const points: PointRow[] = [];
  for (const row of rows) {
    const last = points.at(-1);
    if (last?.start.getTime() === row.start.getTime() && last.key_id === row.key_id) {
      points[points.length - 1] = { ...row, ...plus(last, row) };
    } else points.push(row);
  }
  return points;
}

function tooMany(): Error {
  return invalid(
    "interval",
    `The series would have more than ${MAX_POINTS} points. Use a longer interval or a shorter period.`,
  );
}
