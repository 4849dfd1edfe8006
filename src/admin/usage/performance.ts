import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { LevelUsageSchema, PerformanceSchema } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { Effort, MetricsInterval } from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { Pool } from "../../store/pool.ts";
import { amountText } from "../shared/amount.ts";
import { MS, points, readInterval, readPeriod, startOf } from "../shared/period.ts";
import { visibleKeys } from "../shared/rights.ts";
import { FAILED } from "../shared/search.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import type { UsageAdmin } from "./usage.ts";

const MAX_POINTS = 800;
const MAX_MS = 92 * MS.day;

/** Approximate number of rows in the sample of latencies, and of the time slots that they are taken from. */
const SAMPLE = 20_000;
const SLOTS = 600;

/**
 * Computes latency and failures of a workspace from its requests, over at most 92 days and 800 points. Failures are
 * counted with an index that holds only failures. Latencies come from the first few answers of each of many short time
 * slots: that is all answers when there are few, and otherwise an even sample. Levels come from the sums of usage.
 */
export function getPerformance(pool: Pool): UsageAdmin["getPerformance"] {
  return async ({ workspace, keyId, ...request }, actor) => {
    const { id } = await findWorkspace(pool.query, actor, workspace);
    const interval = readInterval(request.interval || MetricsInterval.HOUR, ["minute", "hour", "day"]);
    const { from: start, to } = readPeriod(request, MS.day);
    const width = MS[interval];
    const from = startOf(interval, start);
    if (to.getTime() - from.getTime() > MAX_MS) throw invalid("from", "The period may have at most 92 days.");
    const count = points(interval, from, to);
    if (count > MAX_POINTS) {
      throw invalid("interval", `The series would have more than ${MAX_POINTS} points. Use a longer interval.`);
    }
    const keys = await visibleKeys(pool.query, actor, keyId);
    const ofKeys = keys === undefined ? "" : "and key_id = any ($4)";
    const values = [id, from, to, ...(keys === undefined ? [] : [keys])];
    const slots = Math.min(25, Math.max(4, Math.floor(SLOTS / count)));
    const rows = Math.max(5, Math.floor(SAMPLE / (count * slots)));
    // One after the other, because a request may use one connection at a time.
    const took = await pool.query<Latencies>(
      `select start, percentile_disc(array[0.5, 0.95]) within group (order by latency_ms) as p
       from generate_series(0, ${count * slots - 1}) as slot
         cross join lateral (select $2::timestamptz + slot * interval '${width / slots} ms' as s) at
         cross join lateral (
           select latency_ms, ${FAILED} as failed from generations
           where workspace_id = $1 ${ofKeys}
             and created_at >= at.s and created_at < least($3, at.s + interval '${width / slots} ms')
           order by created_at limit ${rows}) g
         cross join lateral (select $2::timestamptz + slot / ${slots} * interval '${width} ms' as start) point
       where not failed
       group by grouping sets ((start), ())`,
      values,
    );
    const failed = await pool.query<Failures>(
      `select date_trunc('${interval}', created_at, 'UTC') as start, outcome as code, count(*) as requests
       from generations
       where workspace_id = $1 ${ofKeys} and created_at >= $2 and created_at < $3 and outcome <> 'ok' and ${FAILED}
       group by 1, 2`,
      values,
    );
    const levels = await pool.query<LevelSums>(
      `select start, sum(level_requests[1])::bigint as "lowRequests", sum(level_credits_micro[1])::bigint as "lowMicro",
         sum(level_requests[2])::bigint as "mediumRequests", sum(level_credits_micro[2])::bigint as "mediumMicro",
         sum(level_requests[3])::bigint as "highRequests", sum(level_credits_micro[3])::bigint as "highMicro"
       from usage where workspace_id = $1 ${ofKeys} and unit = '${interval}' and start >= $2 and start < $3
         and level_requests is not null
       group by grouping sets ((start), ())`,
      values,
    );
    const period = { startTime: timestampFromDate(from), endTime: timestampFromDate(to) };
    return { ...period, ...assemble(took, failed, levels) };
  };
}

interface Latencies {
  /** Null: the whole period. */
  start: Date | null;
  /** Median and 95th percentile in milliseconds; null without answers. */
  p: [number, number] | null;
}

interface Failures {
  start: Date;
  /** Every failure after admission has a code, which the store keeps as the outcome. */
  code: string;
  requests: bigint;
}

/** Answers and credits of the levels; null without a request. */
interface LevelSums {
  /** Null: the whole period. */
  start: Date | null;
  lowRequests: bigint | null;
  lowMicro: bigint | null;
  mediumRequests: bigint | null;
  mediumMicro: bigint | null;
  highRequests: bigint | null;
  highMicro: bigint | null;
}

/** @returns the points oldest first, without those that have neither answers nor failures */
function assemble(took: Latencies[], failed: Failures[], levels: LevelSums[]) {
  const levelsAt = new Map(levels.map((sums) => [sums.start?.getTime(), levelsOf(sums)]));
  const counts = Map.groupBy(failed, ({ start }) => start.getTime());
  const latencies = new Map(took.map(({ start, p }) => [start?.getTime(), p]));
  const answered = [...latencies].flatMap(([at, p]) => (at !== undefined && p ? at : []));
  const used = [...levelsAt.keys()].filter((at) => at !== undefined);
  const times = new Set([...counts.keys(), ...answered, ...used]);
  const total = new Map<string, bigint>();
  for (const { code, requests } of failed) total.set(code, (total.get(code) ?? 0n) + requests);
  const failures = [...total].map(([code, requests]) => ({ code, requests }));
  return {
    total: message(latencies.get(undefined), failures, levelsAt.get(undefined)),
    series: [...times]
      .toSorted((a, b) => a - b)
      .map((time) => ({
        start: timestampFromDate(new Date(time)),
        performance: message(latencies.get(time), counts.get(time) ?? [], levelsAt.get(time)),
      })),
  };
}

/** The most frequent failure comes first. */
function message(
  p: Latencies["p"] | undefined,
  failures: readonly Omit<Failures, "start">[],
  levels: MessageInitShape<typeof LevelUsageSchema>[] = [],
): MessageInitShape<typeof PerformanceSchema> {
  return {
    ...(p ? { latencyP50Ms: p[0], latencyP95Ms: p[1] } : {}),
    failures: failures
      .map(({ code, requests }) => ({ code, requests }))
      .sort((a, b) => Number(b.requests - a.requests) || (a.code < b.code ? -1 : 1)),
    levels,
  };
}

/** The levels that were used. A failure can be charged, too. */
function levelsOf(sums: LevelSums): MessageInitShape<typeof LevelUsageSchema>[] {
  return [
    { level: Effort.LOW, requests: sums.lowRequests ?? 0n, micro: sums.lowMicro ?? 0n },
    { level: Effort.MEDIUM, requests: sums.mediumRequests ?? 0n, micro: sums.mediumMicro ?? 0n },
    { level: Effort.HIGH, requests: sums.highRequests ?? 0n, micro: sums.highMicro ?? 0n },
  ]
    .filter(({ requests, micro }) => requests > 0n || micro > 0n)
    .map(({ micro, ...level }) => ({ ...level, credits: amountText(micro) }));
}
