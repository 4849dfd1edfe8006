import { orOverloaded, type Pool } from "../../store/pool.ts";
import { pageOf, readPageToken, sizeOfPage } from "../page.ts";
import { COLUMNS, type Row, type Workspace, workspaceOf } from "./workspaces.ts";

/** A workspace with its use since the start of an hour, 24 to 25 hours ago. */
export interface WorkspaceState {
  readonly workspace: Workspace;
  readonly requests: bigint;
  readonly failed: bigint;
  /** In millionths of a credit. */
  readonly charged: bigint;
  /** Names of the limits that are reached now. */
  readonly reached: readonly string[];
}

interface StateRow extends Row {
  requests: bigint;
  failed: bigint;
  charged: bigint;
  reached: string[];
}

/**
 * Lists workspaces by name with their use and the limits that are reached, in pages.
 * @throws Failure `invalid_request` with the field; `overloaded` when the database is unavailable
 */
export async function listWorkspaceStates(
  pool: Pool,
  { pageSize, pageToken }: { pageSize?: number; pageToken?: string },
): Promise<{ states: WorkspaceState[]; nextPageToken: string | undefined }> {
  const size = sizeOfPage(pageSize);
  const [after = ""] = readPageToken(pageToken, /^([\w.-]+)$/) ?? [];
  const found = await orOverloaded(
    pool.query<StateRow>(
      `select ${COLUMNS}, d.requests, d.failed, d.charged,
         array(
           select l.name from current_periods(w.id, clock_timestamp()) p
             cross join lateral (values
               ('requests_per_' || p.unit, p.requests),
               ('input_tokens_per_' || p.unit, p.input_tokens),
               ('output_tokens_per_' || p.unit, p.output_tokens),
               ('concurrent_requests', case p.unit when 'minute' then u.running end)) l (name, used)
           where l.used >= (a.limits ->> l.name)::bigint order by 1) as reached
       from workspaces w join accounts a on a.workspace_id = w.id
         cross join in_use(w.id) u
         cross join lateral (
           select coalesce(sum(requests), 0)::bigint as requests,
             coalesce(sum(failed_requests), 0)::bigint as failed, coalesce(sum(credits_micro), 0)::bigint as charged
           from usage where workspace_id = w.id and unit = 'hour'
             and start >= date_trunc('hour', clock_timestamp() - interval '24 hours')) d
       where w.name > $1 order by w.name limit $2`,
      [after, size + 1],
    ),
  );
  const { rows, nextPageToken } = pageOf(found, size, ({ name }) => name);
  return {
    states: rows.map(({ requests, failed, charged, reached, ...row }) => ({
      workspace: workspaceOf(row),
      requests,
      failed,
      charged,
      reached,
    })),
    nextPageToken,
  };
}
