import type { MetricsPoint, MetricsResponse } from "../../../gen/chorus/v1/generation_pb.js";
import { millis, startsOf } from "../overview/series.ts";
import { keyLabels } from "../parts/key-labels.ts";
import { boundsOf, intervalOf, type Period } from "../parts/period.tsx";
import { usage } from "../rpc.ts";
import { fieldsOf, type Group, subjectOf } from "./group.ts";

/** Subjects with a series of their own. */
const MOST = 5;

/** The use of those that used the most credit, each with a name, and of all requests. */
export interface Split {
  readonly all: MetricsResponse;
  readonly parts: readonly { readonly name: string; readonly of: MetricsResponse }[];
  /** Width of a point, in milliseconds. */
  readonly ms: number;
}

/** Loads the series of the largest subjects of a group. Five small series take less than one of all subjects. */
export async function loadSplit(period: Period, group: Group, signal: AbortSignal): Promise<Split> {
  const read = async (subject: string) => (await loadSubject(period, subject, signal)).all;
  const [all, { subjects }] = await Promise.all([
    read(""),
    usage.listTopSubjects({ ...boundsOf(period), ...fieldsOf(group), pageSize: MOST }, { signal }),
  ]);
  const largest = subjects.slice(0, MOST);
  const labels = keyLabels(largest, ({ subject }) => subject);
  const parts = await Promise.all(
    largest.map(async ({ subject }) => ({
      name: labels.get(subject) ?? subject,
      of: await read(subjectOf(group, subject)),
    })),
  );
  return { all, parts, ms: intervalOf(period).ms };
}

/** Loads the series of one subject alone. @param subject empty: all requests */
export async function loadSubject(period: Period, subject: string, signal: AbortSignal): Promise<Split> {
  const { interval, ms } = intervalOf(period);
  const { usage: all } = await usage.getUsage({ ...boundsOf(period), interval, subject }, { signal });
  if (!all) throw new Error("the service left the figures out");
  return { all, parts: [], ms };
}

type Figure = (point: MetricsPoint) => number;

/** The values of one figure by interval: of each subject, and of all other requests. */
export function valuesOf({ all, parts, ms }: Split, figure: Figure) {
  const starts = startsOf(all, ms);
  const row = ({ series }: MetricsResponse) => {
    const points = new Map(series.map((point) => [millis(point.start), point]));
    return starts.map((start) => {
      const point = points.get(start);
      return point ? figure(point) : 0;
    });
  };
  const rows = parts.map(({ name, of }) => ({ label: name, values: row(of) }));
  // Requests can end between two calls, so a part can be ahead of the whole.
  const rest = row(all).map((sum, i) =>
    Math.max(0, round(rows.reduce((left, { values }) => left - (values[i] ?? 0), sum))),
  );
  return { at: starts.map((start) => start / 1_000), rows, rest };
}

/** Sums of credits have errors far below a millionth. */
function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
