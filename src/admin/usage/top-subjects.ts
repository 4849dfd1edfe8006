import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ListTopSubjectsRequest } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { CapFigure } from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { amountText } from "../shared/amount.ts";
import { checkLabel, nearestTime } from "../shared/fields.ts";
import { pageOf, readPageToken, sizeOfPage } from "../shared/page.ts";
import { MS, pieces, readPeriod, startOf } from "../shared/period.ts";
import { visibleKeys } from "../shared/rights.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { after, type Split, splitOfSubjects } from "./metrics.ts";
import { SUMS, type Sums, totalsFields, type UsageAdmin } from "./usage.ts";

const MAX_TOP = 100;
const TOP = 10;

/** Longest period that is summed up from hours, in milliseconds. Longer periods start with a whole day. */
const HOURS_MS = 3 * MS.day;

const COLUMNS = "requests, failed_requests, input_tokens, output_tokens, cached_tokens, credits_micro";

/** Figures that can order subjects, as columns of `usage`. */
const FIGURES: Partial<Record<CapFigure, string>> = {
  [CapFigure.UNSPECIFIED]: "credits_micro",
  [CapFigure.CREDITS]: "credits_micro",
  [CapFigure.REQUESTS]: "requests",
  [CapFigure.INPUT_TOKENS]: "input_tokens",
  [CapFigure.OUTPUT_TOKENS]: "output_tokens",
};

interface Row extends Sums {
  subject: string;
  /** Of a key. */
  name: string;
  prefix: string;
  /** The figure that orders the rows. */
  figure: bigint;
}

interface Range {
  readonly workspaceId: string;
  readonly from: Date;
  readonly to: Date;
}

/** What is listed, and in which order. */
interface Selection extends Range {
  readonly split: Split;
  /** Column of `usage`. */
  readonly figure: string;
  readonly search: string;
  /** The keys that may be listed; undefined: all. */
  readonly keys?: readonly string[] | undefined;
  /** Figure and subject of the last row of the page before. */
  readonly position?: readonly [figure: string, subject: string] | undefined;
  readonly limit: number;
}

/** Lists the subjects of a workspace by what they used over a period. It sums up the rollups of the period. */
export function listTopSubjects(pool: Pool): UsageAdmin["listTopSubjects"] {
  return async (request, actor) => {
    const size = sizeOfPage(request.pageSize);
    const figure = FIGURES[request.figure];
    if (!figure) throw invalid("figure", "figure must be credits, requests, input_tokens or output_tokens.");
    checkLabel("search", request.search);
    const split = splitOfSubjects(request);
    const { period = widen(request), position } = readPlace(request.pageToken) ?? {};
    const { id: workspaceId } = await findWorkspace(pool.query, actor, request.workspace);
    const range = { workspaceId, ...period };
    const selection = { ...range, split, figure, search: request.search, position, limit: size + 1 };
    const found = await readTop(pool.query, selection);
    const bounds = `${period.from.getTime()} ${period.to.getTime()}`;
    const { rows, nextPageToken } = pageOf(found, size, (row) => `${bounds} ${row.figure} ${row.subject}`);
    return {
      startTime: timestampFromDate(period.from),
      endTime: timestampFromDate(period.to),
      subjects: rows.map((row) => ({ ...nameOf(row), subject: row.subject, ...figuresOf(sumsOf(row)) })),
      total: figuresOf(await readTotal(pool.query, range)),
      nextPageToken,
    };
  };
}

/** The period and the position in a token; undefined for the first page. @throws Failure `invalid_request` */
function readPlace(token: string) {
  const place = readPageToken(token, /^(-?\d{1,15}) (-?\d{1,15}) (\d{1,18}) ([^\0]*)$/);
  if (!place) return undefined;
  const [from = "", to = "", figure = "", subject = ""] = place;
  const period = { from: new Date(Number(from)), to: new Date(Number(to)) };
  if (!(period.from < period.to)) throw invalid("page_token", "page_token must be next_page_token of an earlier page.");
  return { period, position: [figure, subject] as const };
}

/** Lists the keys of a workspace that used most credit over a period. */
export function listTopKeys(pool: Pool): UsageAdmin["listTopKeys"] {
  return async ({ workspace, pageSize, ...request }, actor) => {
    const { id: workspaceId } = await findWorkspace(pool.query, actor, workspace);
    if (!Number.isInteger(pageSize) || pageSize < 0 || pageSize > MAX_TOP) {
      throw invalid("page_size", `page_size must be 1 to ${MAX_TOP}, or 0 for ${TOP}.`);
    }
    const keys = await visibleKeys(pool.query, actor, "");
    const of = { workspaceId, ...widen(request), split: {}, figure: "credits_micro", search: "", keys };
    const rows = await readTop(pool.query, { ...of, limit: pageSize || TOP });
    return {
      keys: rows.map((row) => ({ ...nameOf(row), keyId: row.subject, totals: totalsFields(sumsOf(row)) })),
    };
  };
}

/** Widens a period to the start of its hour (of its day when it is longer than three days) and to whole minutes. */
function widen(request: Pick<ListTopSubjectsRequest, "startTime" | "endTime">): { from: Date; to: Date } {
  const { from, to } = readPeriod(request, 30 * MS.day);
  const interval = to.getTime() - from.getTime() > HOURS_MS ? "day" : "hour";
  return { from: startOf(interval, from), to: nearestTime(Math.ceil(to.getTime() / MS.minute) * MS.minute) };
}

/** SQL for the rollups of a period, from the largest units that fit. @param values of the statement; $1: workspace */
function rollups({ from, to }: Range, select: string, where: string, values: unknown[]): string {
  const isDay = startOf("day", from).getTime() === from.getTime();
  const parts = pieces(isDay ? "day" : "hour", from, to).map(
    ({ unit, start, end }) => `select ${select}, ${COLUMNS} from ${where} and unit = '${unit}'
      and start >= $${values.push(start)} and start < $${values.push(end)}`,
  );
  return parts.join(" union all ");
}

function readTop(query: Query, of: Selection): Promise<Row[]> {
  const { split, figure, search, position, limit } = of;
  const values: unknown[] = [of.workspaceId];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const ofKeys = () => `${keysLike(search, parameter)} ${of.keys ? `and key_id = any (${parameter(of.keys)})` : ""}`;
  const rows =
    split.prefix === undefined
      ? rollups(of, "key_id as subject", `usage where workspace_id = $1 ${ofKeys()}`, values)
      : rollups(
          of,
          `substr(subject, ${split.prefix.length + 1}) as subject`,
          `usage_subjects where workspace_id = $1 and subject >= ${parameter(split.prefix)}
             and subject < ${parameter(after(split.prefix))}
             and starts_with(subject, ${parameter(split.prefix + search)})`,
          values,
        );
  const sum = `sum(${figure})`;
  const later = position?.map(parameter);
  return query<Row>(
    `select u.*, coalesce(k.name, '') as name, coalesce(k.prefix, '') as prefix
     from (select subject, ${sum}::bigint as figure, ${SUMS} from (${rows}) as rows group by subject
           ${later ? `having ${sum} < ${later[0]} or (${sum} = ${later[0]} and subject > ${later[1]})` : ""}
           order by figure desc, subject limit ${parameter(limit)}) u
     left join api_keys k on ${split.prefix === undefined} and k.workspace_id = $1 and k.id = u.subject
     order by figure desc, subject`,
    values,
  );
}

/** SQL that restricts rows of `usage` to keys whose identifier or name starts with a text. */
function keysLike(search: string, parameter: (value: unknown) => string): string {
  if (search === "") return "";
  const text = parameter(search);
  return `and key_id in (select k.id from api_keys k where k.workspace_id = $1
    and (starts_with(k.id, ${text}) or starts_with(lower(k.name), lower(${text}))))`;
}

async function readTotal(query: Query, of: Range): Promise<Sums> {
  const values: unknown[] = [of.workspaceId];
  const rows = rollups(of, "workspace_id", "usage where workspace_id = $1", values);
  const [total] = await query<Sums>(
    `select ${SUMS} from (select ${COLUMNS} from (${rows}) u union all select 0, 0, 0, 0, 0, 0) as rows`,
    values,
  );
  if (!total) throw new Error("no total was read");
  return total;
}

const nameOf = ({ name, prefix }: Row) => ({ keyName: name, keyPrefix: prefix });

const sumsOf = ({ subject: _, name: __, prefix: ___, figure: ____, ...sums }: Row): Sums => sums;

function figuresOf({ micro, ...counts }: Sums) {
  return { ...counts, credits: amountText(micro) };
}
