import { invalid } from "../../contract/failure.ts";
import type { Pool } from "../../store/pool.ts";
import { MS, pieces, readPeriod, startOf } from "../shared/period.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { SUMS, type Sums, totalsFields, type UsageAdmin } from "./usage.ts";

const MAX_TOP = 100;
const TOP = 10;

/** Longest period that is summed up from hours, in milliseconds. Longer periods start with a whole day. */
const HOURS_MS = 3 * MS.day;

/**
 * Finds the keys of a workspace that used most credit over a period. The period is widened to the start of its hour (of
 * its day when it is longer than three days), and to the end of its minute.
 */
export function listTopKeys(pool: Pool): UsageAdmin["listTopKeys"] {
  return async ({ workspace, pageSize, ...request }, actor) => {
    const { id } = await findWorkspace(pool.query, actor, workspace);
    if (!Number.isInteger(pageSize) || pageSize < 0 || pageSize > MAX_TOP) {
      throw invalid("page_size", `page_size must be 1 to ${MAX_TOP}, or 0 for ${TOP}.`);
    }
    const { from, to } = readPeriod(request, 30 * MS.day);
    const interval = to.getTime() - from.getTime() > HOURS_MS ? "day" : "hour";
    const values: unknown[] = [id, pageSize || TOP];
    const end = new Date(Math.ceil(to.getTime() / MS.minute) * MS.minute);
    const rows = pieces(interval, startOf(interval, from), end).map(
      ({ unit, start, end }) => `select * from usage
        where workspace_id = $1 and unit = '${unit}'
          and start >= $${values.push(start)} and start < $${values.push(end)}`,
    );
    const found = await pool.query<Sums & { keyId: string; keyName: string }>(
      `select u.*, coalesce(k.name, '') as "keyName"
       from (select key_id as "keyId", ${SUMS} from (${rows.join(" union all ")}) as rows
             group by 1 order by micro desc, requests desc, 1 limit $2) u
         left join api_keys k on k.id = u."keyId" and k.workspace_id = $1
       order by micro desc, requests desc, 1`,
      values,
    );
    const keys = found.map(({ keyId, keyName, ...sums }) => ({ keyId, keyName, totals: totalsFields(sums) }));
    return { keys };
  };
}
