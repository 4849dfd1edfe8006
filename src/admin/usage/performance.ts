import { invalid } from "../../failure.ts";
import { orOverloaded, type Pool } from "../../store/pool.ts";
import { FAILED } from "../activity.ts";

/** Latency and failures of the requests admitted within one interval. */
export interface Performance {
  /** Median latency in milliseconds; undefined without answers. */
  p50: number | undefined;
  /** 95th percentile in milliseconds; undefined without answers. */
  p95: number | undefined;
  /** Failures by kind, the most frequent first. */
  failures: { kind: string; requests: bigint }[];
}

export type PerformanceInterval = "minute" | "hour" | "day";

export interface PerformanceRequest {
  workspaceId: string;
  /** Inclusive, widened to the start of its interval. */
  from: Date;
  /** Exclusive. */
  to: Date;
  interval: PerformanceInterval;
  /** Undefined: all keys. */
  keyId: string | undefined;
}

export interface PerformanceSeries {
  from: Date;
  to: Date;
  total: Performance;
  /** Oldest first; intervals without answers and failures are left out. */
  series: (Performance & { start: Date })[];
}

const MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const MAX_POINTS = 800;
const MAX_MS = 92 * MS.day;

/** Approximate number of rows in the sample of latencies, and of the time slots that they are taken from. */
const SAMPLE = 20_000;
const SLOTS = 600;

/**
 * Computes latency and failures of a workspace from its requests, over at most 92 days and 800 points. It needs no
 * rollups. Failures are counted with an index that holds only failures. Latencies come from the first few answers of
 * each of many short time slots: that is all answers when there are few, and otherwise an even sample.
 * @throws Failure `invalid_request` with `from` or `interval`; `overloaded` when the database is unavailable
 */
export async function readPerformance(
  pool: Pool,
  { workspaceId, from: start, to, interval, keyId }: PerformanceRequest,
): Promise<PerformanceSeries> {
  const width = MS[interval];
  const from = new Date(Math.floor(start.getTime() / width) * width);
  if (!(start < to)) throw invalid("from", "The period must have a start before its end.");
  if (to.getTime() - from.getTime() > MAX_MS) throw invalid("from", "The period may have at most 92 days.");
  const points = Math.ceil((to.getTime() - from.getTime()) / width);
  if (points > MAX_POINTS) {
    throw invalid("interval", `The series would have more than ${MAX_POINTS} points. Use a longer interval.`);
  }
  const ofKey = keyId === undefined ? "" : "and key_id = $4";
  const key = keyId === undefined ? [] : [keyId.replaceAll("\0", "")];
  const slots = Math.min(25, Math.max(4, Math.floor(SLOTS / points)));
  const rows = Math.max(5, Math.floor(SAMPLE / (points * slots)));
  const latencies = () =>
    pool.query<{ start: Date | null; p: number[] }>(
      `select start, percentile_disc(array[0.5, 0.95]) within group (order by latency_ms) as p
     from generate_series(0, ${points * slots - 1}) as slot
       cross join lateral (select $2::timestamptz + slot * interval '${width / slots} ms' as s) at
       cross join lateral (
         select latency_ms, ${FAILED} as failed from generations
         where workspace_id = $1 ${ofKey}
           and created_at >= at.s and created_at < least($3, at.s + interval '${width / slots} ms')
         order by created_at limit ${rows}) g
       cross join lateral (select $2::timestamptz + slot / ${slots} * interval '${width} ms' as start) point
     where not failed
     group by grouping sets ((start), ())`,
      [workspaceId, from, to, ...key],
    );
  const failures = () =>
    pool.query<{ start: Date; kind: string; requests: bigint }>(
      `select date_trunc('${interval}', created_at, 'UTC') as start, outcome as kind, count(*) as requests
     from generations
     where workspace_id = $1 ${ofKey} and created_at >= $2 and created_at < $3 and outcome <> 'ok' and ${FAILED}
     group by 1, 2`,
      [workspaceId, from, to, ...key],
    );
  // One after the other, because a request may use one connection at a time.
  const took = await orOverloaded(latencies());
  const failed = await orOverloaded(failures());
  return { from, to, ...assemble(took, failed) };
}

function assemble(
  took: { start: Date | null; p: number[] | null }[],
  failed: { start: Date; kind: string; requests: bigint }[],
): Pick<PerformanceSeries, "total" | "series"> {
  const total: Performance = { p50: undefined, p95: undefined, failures: [] };
  const points = new Map<number, Performance>();
  const at = (start: Date): Performance => {
    const point = points.get(start.getTime()) ?? { p50: undefined, p95: undefined, failures: [] };
    points.set(start.getTime(), point);
    return point;
  };
  for (const { start, p } of took) {
    if (p) Object.assign(start ? at(start) : total, { p50: p[0], p95: p[1] });
  }
  const sums = new Map<string, bigint>();
  for (const { start, kind, requests } of failed) {
    at(start).failures.push({ kind, requests });
    sums.set(kind, (sums.get(kind) ?? 0n) + requests);
  }
  total.failures = [...sums].map(([kind, requests]) => ({ kind, requests }));
  for (const { failures } of [total, ...points.values()]) {
    failures.sort((a, b) => Number(b.requests - a.requests) || (a.kind < b.kind ? -1 : 1));
  }
  const series = [...points].sort(([a], [b]) => a - b).map(([time, point]) => ({ start: new Date(time), ...point }));
  return { total, series };
}
