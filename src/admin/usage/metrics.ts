import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  MetricsGroupBy,
  MetricsInterval,
  type MetricsRequest,
  type MetricsResponse,
  MetricsResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { type Failure, invalid } from "../../contract/failure.ts";
import { isTag } from "../../contract/subjects.ts";
import type { Pool } from "../../store/pool.ts";
import { nearestTime } from "../shared/fields.ts";
import { type Interval, MS, pieces, points, readInterval, readPeriod, startOf } from "../shared/period.ts";
import { checkSubject } from "../shared/subject.ts";
import { SUMS, type Sums, sumOf, totalsFields } from "./usage.ts";

const DEFAULT_PERIOD_MS = 30 * MS.day;
const MAX_POINTS = 5_000;

interface PointRow extends Sums {
  start: Date;
  /** What tells the points of one interval apart; null: nothing does. */
  label: string | null;
}

/** How usage is split. */
export interface Split {
  /** Member of a point that says which one it is. */
  readonly member?: "keyId" | "user" | "tag";
  /** Beginning of the subjects in `usage_subjects`; undefined: the table `usage` is read. */
  readonly prefix?: string;
}

/** What is counted; empty texts do not restrict it. */
interface Counted {
  readonly workspaceId: string;
  readonly keyId: string;
  /** The keys that may be counted; undefined: all. */
  readonly keys?: readonly string[] | undefined;
  /** A user or a tag, as in `usage_subjects`. */
  readonly subject: string;
}

const WHOLE: Split = {};

/** The split of lists of subjects, which are keys where no group is given. @throws Failure */
export function splitOfSubjects({ groupBy, groupTag }: Parameters<typeof splitOf>[0]): Split {
  const { NONE, UNSPECIFIED, KEY } = MetricsGroupBy;
  return splitOf({ groupBy: [NONE, UNSPECIFIED].includes(groupBy) ? KEY : groupBy, groupTag }, "");
}

/** @throws Failure */
export function splitOf({ groupBy, groupTag }: Pick<MetricsRequest, "groupBy" | "groupTag">, keyId: string): Split {
  const { NONE, UNSPECIFIED, KEY, USER, TAG } = MetricsGroupBy;
  if (groupTag !== "" && groupBy !== TAG)
    throw invalid("group_by", 'group_by takes a name with the group tag only, such as "tag:team". Leave the name out.');
  if (groupBy === NONE || groupBy === UNSPECIFIED) return WHOLE;
  if (groupBy === KEY) return { member: "keyId" };
  if (groupBy !== USER && groupBy !== TAG)
    throw invalid("group_by", 'group_by must be "none", "key", "user" or "tag:" and the name of a tag.');
  if (keyId !== "") throw invalid("key_id", "key_id is not possible with the groups user and tag. Leave it out.");
  if (groupBy === USER) return { member: "user", prefix: "user:" };
  if (!isTag(groupTag, "any")) throw invalid("group_by", 'group_by needs the name of a tag, such as "tag:team".');
  return { member: "tag", prefix: `tag:${groupTag}=` };
}

/**
 * Sums up the use of a workspace over a period, by the time at which each request was admitted. It reads rollups, so
 * its time does not grow with the number of requests (docs/decisions/usage.md).
 * @param of.keyId counts only this key; empty: all keys
 * @param of.subject counts only this key, user or tag; empty: all
 * @param of.keys the keys that may be counted; undefined: all
 * @throws Failure `invalid_request` with `from` for an empty period, with `interval`, also for more than 5,000 points,
 * or with `group_by`, `key_id` or `subject`
 */
export async function readMetrics(
  pool: Pool,
  request: Pick<MetricsRequest, "startTime" | "endTime" | "interval" | "groupBy" | "groupTag">,
  of: Omit<Counted, "subject"> & { readonly subject?: string },
): Promise<MetricsResponse> {
  const width = request.interval || MetricsInterval.DAY;
  const interval = readInterval(width, ["minute", "hour", "day", "month"]);
  const split = splitOf(request, of.keyId);
  const counted = countedOf(of, split);
  const { from: start, to: end } = readPeriod(request, DEFAULT_PERIOD_MS);
  // Widened to the start of the first interval, and to the end of the last minute.
  const from = startOf(interval, start);
  const to = nearestTime(Math.ceil(end.getTime() / MS.minute) * MS.minute);
  if (points(interval, from, end) > MAX_POINTS) throw tooMany();
  const range = { ...counted, interval, from, to };
  const rows = await readPoints(pool, range, split);
  if (rows.length > MAX_POINTS) throw tooMany();
  // A request can have no user, and several tags.
  const whole = split.prefix === undefined ? rows : await readPoints(pool, range, WHOLE);
  return create(MetricsResponseSchema, {
    startTime: timestampFromDate(from),
    endTime: timestampFromDate(to),
    interval: width,
    totals: totalsFields(sumOf(whole)),
    series: rows.map(({ start, label, ...sums }) => ({
      start: timestampFromDate(start),
      ...(split.member ? { [split.member]: label ?? "" } : {}),
      ...totalsFields(sums),
    })),
  });
}

/** @throws Failure */
function countedOf({ subject = "", ...of }: Parameters<typeof readMetrics>[2], split: Split): Counted {
  if (subject === "") return { ...of, subject };
  checkSubject("subject", subject);
  if (split.member || of.keyId !== "")
    throw invalid("subject", "subject is not possible with a group, nor with key_id. Leave them out.");
  return subject.startsWith("key:") ? { ...of, keyId: subject.slice(4), subject: "" } : { ...of, subject };
}

/** Reads the points of a series, oldest first, without intervals that have no requests. */
async function readPoints(
  pool: Pool,
  of: Counted & { interval: Interval; from: Date; to: Date },
  { member, prefix }: Split,
): Promise<PointRow[]> {
  const values: unknown[] = [of.workspaceId];
  const table = prefix === undefined && of.subject === "" ? "usage" : "usage_subjects";
  const ofKey = of.keyId === "" ? "" : `and key_id = $${values.push(of.keyId.replaceAll("\0", ""))}`;
  const visible = of.keys === undefined ? "" : `and key_id = any ($${values.push(of.keys)})`;
  const only = of.subject === "" ? "" : `and subject = $${values.push(of.subject)}`;
  // The character after the last one of the prefix ends the range of the index.
  const ofSubject = prefix && `and subject >= $${values.push(prefix)} and subject < $${values.push(after(prefix))}`;
  const label = prefix === undefined ? (member ? "key_id" : "null") : `substr(subject, ${prefix.length + 1})`;
  const sums = pieces(of.interval, of.from, of.to).map(({ unit, start, end }) => {
    // The index returns rows of the interval's own unit in order. The result of date_trunc would have to be sorted.
    const point = unit === of.interval ? "start" : `date_trunc('${of.interval}', start, 'UTC')`;
    return `(select ${point} as start, ${label} as label, ${SUMS} from ${table}
      where workspace_id = $1 and unit = '${unit}' ${ofKey} ${visible} ${only} ${ofSubject ?? ""}
        and start >= $${values.push(start)} and start < $${values.push(end)}
      group by 1, 2 order by 1, 2 limit ${MAX_POINTS + 1})`;
  });
  return mergePoints(
    await pool.query<PointRow>(`select * from (${sums.join(" union all ")}) as u order by 1, 2`, values),
  );
}

/** The first text after all that begin with a prefix. */
export function after(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** Merges consecutive rows of the same point, which different pieces of the period contribute. */
function mergePoints(rows: PointRow[]): PointRow[] {
  const points: PointRow[] = [];
  for (const row of rows) {
    const last = points.at(-1);
    if (last?.start.getTime() === row.start.getTime() && last.label === row.label) {
      points[points.length - 1] = { ...row, ...sumOf([last, row]) };
    } else points.push(row);
  }
  return points;
}

function tooMany(): Failure {
  return invalid(
    "interval",
    `The series would have more than ${MAX_POINTS} points. Use a longer interval or a shorter period.`,
  );
}
