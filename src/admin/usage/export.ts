import type { Pool, Query } from "../../store/pool.ts";
import { amountText } from "../shared/amount.ts";
import { pageOf, readPageToken, sizeOfPage } from "../shared/page.ts";
import { MS, readPeriod, startOf } from "../shared/period.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { after, type Split, splitOfSubjects } from "./metrics.ts";
import { SUMS, type Sums, type UsageAdmin } from "./usage.ts";

interface Row extends Sums {
  start: Date;
  subject: string;
  name: string;
}

/** What a page reads: the days, and how usage is split. */
interface Range {
  readonly workspaceId: string;
  readonly from: Date;
  readonly to: Date;
  readonly split: Split;
}

/**
 * Returns usage by day and subject, in pages. It reads the sums of days in the order of their index, so a page takes
 * as long for the last day as for the first.
 */
export function exportUsage(pool: Pool): UsageAdmin["exportUsage"] {
  return async ({ workspace, groupBy, groupTag, pageSize, pageToken, ...period }, actor) => {
    const size = sizeOfPage(pageSize);
    const [time, place = ""] = readPageToken(pageToken, /^(\d{1,15}) ([^\0]*)$/) ?? [];
    const { id: workspaceId, name } = await findWorkspace(pool.query, actor, workspace);
    const split = splitOfSubjects({ groupBy, groupTag });
    const { from, to } = readPeriod(period, 30 * MS.day);
    const end = new Date(Math.ceil(to.getTime() / MS.day) * MS.day);
    const range: Range = { workspaceId, from: startOf("day", from), to: end, split };
    const position = time === undefined ? undefined : { start: new Date(Number(time)), subject: place };
    const found = await readRows(pool.query, range, position, size + 1);
    const { rows, nextPageToken } = pageOf(found, size, ({ start, subject }) => `${start.getTime()} ${subject}`);
    const last = nextPageToken === "" ? end : rows.at(-1)?.start;
    const all = split.prefix === undefined ? rows : [...rows, ...(await readRests(pool.query, range, position, last))];
    all.sort((a, b) => a.start.getTime() - b.start.getTime() || (a.subject < b.subject ? -1 : 1));
    return {
      ...{ workspaceId, workspace: name, nextPageToken },
      rows: all.map(({ start, subject, name, micro, ...counts }) => ({
        ...{ day: start.toISOString().slice(0, 10), subject, keyName: name, ...counts, credits: amountText(micro) },
      })),
    };
  };
}

type Position = Pick<Row, "start" | "subject"> | undefined;

/** @param position of the last row of the page before */
function readRows(query: Query, of: Range, position: Position, limit: number): Promise<Row[]> {
  const { workspaceId, from, to, split } = of;
  const values: unknown[] = [workspaceId, position?.start ?? from, to, position?.subject ?? "", limit];
  if (split.prefix === undefined) {
    return query<Row>(
      `select u.*, coalesce(k.name, '') as name
       from (select start, key_id as subject, ${SUMS} from usage
             where workspace_id = $1 and unit = 'day' and start >= $2 and start < $3 and (start, key_id) > ($2, $4)
             group by start, key_id order by start, key_id limit $5) u
       left join api_keys k on k.workspace_id = $1 and k.id = u.subject order by start, subject`,
      values,
    );
  }
  return query<Row>(
    `select start, substr(subject, ${split.prefix.length + 1}) as subject, '' as name, ${SUMS} from usage_subjects
     where workspace_id = $1 and unit = 'day' and start >= $2 and start < $3 and (start, subject) > ($2, $6 || $4)
       and subject >= $6 and subject < $7
     group by start, usage_subjects.subject order by start, usage_subjects.subject limit $5`,
    [...values, split.prefix, after(split.prefix)],
  );
}

/** What requests without a subject used on the days that begin in a page, `last` included. */
async function readRests(query: Query, of: Range, position: Position, last: Date | undefined): Promise<Row[]> {
  const { workspaceId, from, to, split } = of;
  const rows = await query<Row & { isAny: boolean }>(
    `select start, '' as subject, '' as name, ${SUMS} from (
       select start, requests, failed_requests, input_tokens, output_tokens, cached_tokens, credits_micro from usage
       where workspace_id = $1 and unit = 'day' and start >= $2 and start < $3 and start <= $4 and start > $5
       union all
       select start, -requests, -failed_requests, -input_tokens, -output_tokens, -cached_tokens, -credits_micro
       from usage_subjects
       where workspace_id = $1 and unit = 'day' and start >= $2 and start < $3 and start <= $4 and start > $5
         and subject >= $6 and subject < $7) u
     group by start order by start`,
    [
      ...[workspaceId, from, to, last ?? from, position?.start ?? new Date(from.getTime() - 1)],
      ...[split.prefix, after(split.prefix ?? "")],
    ],
  );
  return rows.filter(({ requests, failedRequests }) => requests > 0n || failedRequests > 0n);
}
