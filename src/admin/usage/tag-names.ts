import type { Pool } from "../../store/pool.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import type { UsageAdmin } from "./usage.ts";

/** Most names. */
const MAX_NAMES = 1_000;

/**
 * Lists the names of the tags of a workspace's requests. For each name it searches an index once for the first subject
 * after all values of the name before, so its time does not grow with the number of values.
 */
export function listTagNames(pool: Pool): UsageAdmin["listTagNames"] {
  return async ({ workspace }, actor) => {
    const { id } = await findWorkspace(pool.query, actor, workspace);
    // "=" ends a name, and ">" is the character after it; ";" comes after ":".
    const firstFrom = (start: string) => `select subject from usage_subjects
      where workspace_id = $1 and unit = 'day' and subject >= ${start} and subject < 'tag;' order by subject limit 1`;
    const rows = await pool.query<{ name: string }>(
      `with recursive found as (
         select (${firstFrom("'tag:'")}) as subject
         union all
         select (${firstFrom("split_part(found.subject, '=', 1) || '>'")}) from found where subject is not null
       )
       select substr(split_part(subject, '=', 1), 5) as name from found where subject is not null limit ${MAX_NAMES}`,
      [id],
    );
    return { names: rows.map(({ name }) => name).sort() };
  };
}
