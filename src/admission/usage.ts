import { invalid } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";

/** What a calendar window (UTC) has seen. Counts of requests and of tokens. */
export interface Window {
  /** Start of the next window. */
  resetsAt: Date;
  /** Requests that were admitted and have ended, failed ones too. */
  requests: number;
  inputTokens: number;
  outputTokens: number;
}

export type Interval = "minute" | "hour" | "day" | "month";

/** Sums over a period. Tokens are those of answered requests. */
export interface Totals {
  /** Requests that gave an answer, whole or in part. */
  requests: number;
  /** Requests that gave none: failures, and unary callers who did not wait. */
  failedRequests: number;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  /** Credits charged, exact to one millionth. */
  credits: number;
}

export interface Metrics {
  /** Start, widened to the start of its interval. */
  from: Date;
  to: Date;
  totals: Totals;
  /** Oldest first; intervals without requests are left out. `keyId` only when split by key. */
  series: (Totals & { start: Date; keyId?: string })[];
}

export interface Usage {
  /** Use of the current minute, day and month of a workspace. @throws Failure `overloaded` when the database is away. */
  windows(workspaceId: string, now: Date): Promise<{ minute: Window; day: Window; month: Window }>;
  /**
   * Use of a workspace over a period.
   * @param request.from inclusive
   * @param request.to exclusive
   * @throws Failure `invalid_request` naming `from` when the period is empty, or `interval` when there would be more than 5,000 points;
   * `overloaded` when the database is away.
   */
  metrics(request: { workspaceId: string; from: Date; to: Date; interval: Interval; byKey: boolean }): Promise<Metrics>;
}

const MAX_POINTS = 5_000;

const MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** A streamed answer whose reader left is an answer, in part; a unary one never arrived. */
const ANSWERED = "(outcome in ('ok', 'cut_short') or (outcome = 'caller_gone' and streamed))";

/** Usage over the table `generations`. */
export function createUsage(pool: Pool): Usage {
  return {
    async windows(workspaceId, now) {
      const starts = (["minute", "day", "month"] as const).map((interval) => startOf(interval, now));
      const rows = await orOverloaded(
        pool.query<{ requests: bigint; input: bigint; output: bigint }>(
          `select count(g.id) as requests, coalesce(sum(g.input_tokens), 0)::bigint as input, coalesce(sum(g.output_tokens), 0)::bigint as output
           from unnest($2::timestamptz[]) with ordinality as w (start, place)
           left join generations g on g.workspace_id = $1 and g.created_at >= w.start and g.created_at < $3
           group by w.place order by w.place`,
          [workspaceId, starts, next("month", startOf("month", now))],
        ),
      );
      const [minute, day, month] = (["minute", "day", "month"] as const).map((interval, i) => ({
        resetsAt: next(interval, startOf(interval, now)),
        requests: Number(rows[i]?.requests ?? 0n),
        inputTokens: Number(rows[i]?.input ?? 0n),
        outputTokens: Number(rows[i]?.output ?? 0n),
      })) as [Window, Window, Window];
      return { minute, day, month };
    },

    async metrics({ workspaceId, from: asked, to, interval, byKey }) {
      const from = startOf(interval, asked);
      if (!(asked < to)) throw invalid("from", "The period must have a start before its end.");
      if (points(interval, from, to) > MAX_POINTS) throw tooMany();
      const rows = await orOverloaded(
        pool.query<PointRow>(
          `select date_trunc($4, created_at, 'UTC') as start, ${byKey ? "key_id" : "null"} as key_id,
             count(*) filter (where ${ANSWERED}) as requests, count(*) filter (where not ${ANSWERED}) as failed,
             coalesce(sum(input_tokens) filter (where ${ANSWERED}), 0)::bigint as input,
             coalesce(sum(output_tokens) filter (where ${ANSWERED}), 0)::bigint as output,
             coalesce(sum(cached_tokens) filter (where ${ANSWERED}), 0)::bigint as cached,
             sum(credits_micro)::bigint as micro
           from generations where workspace_id = $1 and created_at >= $2 and created_at < $3
           group by 1, 2 order by 1, 2 limit $5`,
          [workspaceId, from, to, interval, MAX_POINTS + 1],
        ),
      );
      if (rows.length > MAX_POINTS) throw tooMany();
      const series = rows.map((row) => ({
        start: row.start,
        ...(row.key_id === null ? {} : { keyId: row.key_id }),
        ...totals([row]),
      }));
      return { from, to, totals: totals(rows), series };
    },
  };
}

interface PointRow {
  start: Date;
  key_id: string | null;
  requests: bigint;
  failed: bigint;
  input: bigint;
  output: bigint;
  cached: bigint;
  micro: bigint;
}

function totals(rows: PointRow[]): Totals {
  const sum = (name: "requests" | "failed" | "input" | "output" | "cached" | "micro"): number =>
    Number(rows.reduce((total, row) => total + row[name], 0n));
  return {
    requests: sum("requests"),
    failedRequests: sum("failed"),
    inputTokens: sum("input"),
    outputTokens: sum("output"),
    cachedTokens: sum("cached"),
    credits: sum("micro") / 1e6,
  };
}

function tooMany(): Error {
  return invalid(
    "interval",
    `The answer would have more than ${MAX_POINTS} points. Use a longer interval or a shorter period.`,
  );
}

/** Start of the interval, in UTC, in which a moment lies. */
function startOf(interval: Interval, at: Date): Date {
  if (interval !== "month") return new Date(Math.floor(at.getTime() / MS[interval]) * MS[interval]);
  const start = startOf("day", at);
  start.setUTCDate(1);
  return start;
}

function next(interval: Interval, start: Date): Date {
  if (interval !== "month") return new Date(start.getTime() + MS[interval]);
  const end = new Date(start);
  end.setUTCMonth(end.getUTCMonth() + 1);
  return end;
}

function points(interval: Interval, from: Date, to: Date): number {
  if (interval !== "month") return Math.ceil((to.getTime() - from.getTime()) / MS[interval]);
  return (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth() + 1;
}
