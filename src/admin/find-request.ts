import { timeOfRequest } from "../contract/request-id.ts";
import type { RunningRequests } from "../runs/running.ts";
import type { Pool } from "../store/pool.ts";

interface Parts {
  readonly pool: Pool;
  readonly runs: { readonly running: RunningRequests };
  /** Posts the settlements that wait in the log of a workspace. */
  post(workspaceId: string): Promise<void>;
}

const MINUTE_MS = 60_000;

/**
 * When a request can be admitted, in minutes after its arrival: clocks differ, and a body may take as long as
 * CHORUS_BODY_MS allows. Almost all are found in the first part.
 */
const ADMITTED = [
  [-1, 2],
  [2, 80],
] as const;

/** Most requests to look at in each part. Looking at them takes about 100 ms. */
const MAX_SEARCHED = 100_000;

/**
 * Finds the identifier of the generation of a request: one that has ended, or one that runs. Looks at the
 * requests of the workspace that were admitted after the arrival, because no index has the identifiers of requests.
 * @param requestId prefix `req_`
 * @returns undefined also for a request of another workspace, for a repeated request, which has no generation of its
 *   own, and if there were too many requests between its arrival and its admission
 */
export async function generationOf(
  { pool, runs, post }: Parts,
  workspaceId: string,
  requestId: string,
): Promise<string | undefined> {
  const arrived = timeOfRequest(requestId);
  // Random digits of an earlier version.
  if (arrived === undefined || arrived > Date.now() + MINUTE_MS) return undefined;
  const find = async () => {
    for (const part of ADMITTED) {
      const [row] = await pool.query<{ id: string }>(
        `select id from (
           select id, request_id from generations where workspace_id = $1 and created_at >= $2 and created_at < $3
           order by created_at limit ${MAX_SEARCHED}) searched
         where request_id = $4 limit 1`,
        [workspaceId, ...part.map((minutes) => new Date(arrived + minutes * MINUTE_MS)), requestId],
      );
      if (row) return row.id;
    }
    return undefined;
  };
  const ended = await find();
  if (ended) return ended;
  const running = await runs.running.list(workspaceId);
  const found = running.find((one) => one.requestId === requestId);
  if (found) return found.id;
  // It may have ended meanwhile.
  await post(workspaceId);
  return find();
}
