import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  ModelUsageSchema,
  OperationsService,
  ServiceFiguresSchema,
  WorkspaceUsageSchema,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { MetricsInterval } from "../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../contract/failure.ts";
import type { Pool } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText } from "./shared/amount.ts";
import { nearestTime } from "./shared/fields.ts";
import { MS, next, points, readInterval, readPeriod, startOf } from "./shared/period.ts";

const MAX_POINTS = 800;

/** Use of an interval or of a workspace. */
interface Used {
  requests: bigint;
  failed: bigint;
  micro: bigint;
}

/** Calls of a model. */
interface Called {
  /** Null: all intervals. */
  start: Date | null;
  model: string;
  calls: bigint;
  failed: bigint;
  usd: number;
}

type Figures = MessageInitShape<typeof ServiceFiguresSchema> & { requests: bigint; calls: bigint };

/** @param usdPerCredit what a credit is sold for; undefined: it is not known */
export function getServiceUsage(
  pool: Pool,
  usdPerCredit: number | undefined,
): Admin<typeof OperationsService>["getServiceUsage"] {
  return async (request) => {
    const unit = readInterval(request.interval || MetricsInterval.HOUR, ["hour", "day"]);
    const period = readPeriod(request, MS.day);
    const from = startOf(unit, period.from);
    const to = nearestTime(next(unit, startOf(unit, new Date(period.to.getTime() - 1))).getTime());
    if (points(unit, from, to) > MAX_POINTS) {
      const remedy = `Use ${unit === "hour" ? "a longer interval or " : ""}a shorter period.`;
      throw invalid("interval", `The series would have more than ${MAX_POINTS} points. ${remedy}`);
    }
    const values = [from, to, unit];
    // One after the other, because a request may use one connection at a time.
    const used = await useByTime(pool, values);
    const top = await topWorkspaces(pool, values);
    const called = await pool.query<Called>(
      `select date_trunc($3, start, 'UTC') as start, model, sum(calls)::bigint as calls,
         sum(failed_calls)::bigint as failed, sum(cost_usd) as usd
       from model_hours where start >= $1 and start < $2 group by grouping sets ((1, 2), (2))`,
      values,
    );
    const models = called
      .filter(({ start }) => start === null)
      .sort((a, b) => b.usd - a.usd || Number(b.calls - a.calls));
    return {
      startTime: timestampFromDate(from),
      endTime: timestampFromDate(to),
      totals: figuresOf(used, models),
      points: pointsOf(used, called),
      workspaces: top.map(workspaceMessage),
      models: models.map(modelMessage),
      ...(usdPerCredit === undefined ? {} : { usdPerCredit }),
    };
  };
}

/**
 * SQL for sums of the use of workspaces. It searches an index for each workspace, because the index begins with it. The
 * parameters are start and end of the period, and the unit of the intervals.
 */
const SUMS = `sum(u.requests)::bigint as requests, sum(u.failed_requests)::bigint as failed,
    sum(u.credits_micro)::bigint as micro
  from workspaces w cross join lateral (
    select * from usage where workspace_id = w.id and unit = $3 and start >= $1 and start < $2) u`;

/** Sums up the use of all workspaces by interval. */
function useByTime({ query }: Pool, values: readonly unknown[]): Promise<(Used & { start: Date })[]> {
  return query(`select u.start, ${SUMS} group by u.start`, values);
}

/** The workspaces that were charged most. */
function topWorkspaces({ query }: Pool, values: readonly unknown[]): Promise<(Used & { name: string })[]> {
  return query(`select w.name, ${SUMS} group by w.name order by micro desc, w.name limit 10`, values);
}

function pointsOf(used: readonly (Used & { start: Date })[], called: readonly Called[]) {
  const times = new Map<number, { used: Used[]; called: Called[] }>();
  const at = ({ start }: { start: Date | null }) => {
    const time = start?.getTime() ?? 0;
    const found = times.get(time) ?? { used: [], called: [] };
    times.set(time, found);
    return found;
  };
  for (const row of used) at(row).used.push(row);
  for (const row of called) if (row.start) at(row).called.push(row);
  return [...times]
    .sort(([a], [b]) => a - b)
    .map(([time, rows]) => ({
      start: timestampFromDate(new Date(time)),
      figures: figuresOf(rows.used, rows.called),
      models: rows.called.map(modelMessage),
    }));
}

function figuresOf(used: readonly Used[], called: readonly Called[]): Figures {
  const total = <R>(rows: readonly R[], of: (row: R) => bigint) => rows.reduce((sum, row) => sum + of(row), 0n);
  return {
    requests: total(used, ({ requests }) => requests),
    failedRequests: total(used, ({ failed }) => failed),
    credits: amountText(total(used, ({ micro }) => micro)),
    calls: total(called, ({ calls }) => calls),
    failedCalls: total(called, ({ failed }) => failed),
    costUsd: called.reduce((sum, { usd }) => sum + usd, 0),
  };
}

function workspaceMessage({
  name,
  requests,
  failed,
  micro,
}: Used & { name: string }): MessageInitShape<typeof WorkspaceUsageSchema> {
  return { name, requests, failedRequests: failed, credits: amountText(micro) };
}

function modelMessage({ model, calls, failed, usd }: Called): MessageInitShape<typeof ModelUsageSchema> {
  return { name: model, calls, failedCalls: failed, costUsd: usd };
}
