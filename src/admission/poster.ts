import { isLocked, isUnavailable, orOverloaded, type Pool } from "../store/pool.ts";

/** Largest number of workspaces of one transaction, which locks their accounts. */
const MAX_WORKSPACES = 64;

/** Largest number of workspaces that are posted for one read of all. */
const MAX_READ = 1_000;

/** Workspaces that could not be posted, each with the reason. */
type Failed = Map<string, unknown>;

/**
 * Posts what waits in the log of workspaces. Posting moves rows within one transaction, so it does not wait for the
 * disk: a crash of the server that loses the transaction restores the log. If that fails for some, it posts each alone.
 * @throws Error when the database is unavailable
 */
async function post(pool: Pool, workspaces: readonly string[]): Promise<Failed> {
  const failed: Failed = new Map();
  for (let i = 0; i < workspaces.length; i += MAX_WORKSPACES) {
    const some = workspaces.slice(i, i + MAX_WORKSPACES);
    try {
      await pool.query("select set_config('synchronous_commit', 'off', true), post_settlements($1)", [some]);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      if (some.length > 1) for (const one of some) for (const entry of await post(pool, [one])) failed.set(...entry);
      else failed.set(some.join(), error);
    }
  }
  return failed;
}

/**
 * Posts what waits in the log, before figures are read that must include it. Leaves it while another transaction locks
 * a workspace for long.
 * @param workspace undefined: all workspaces, at most 1,000
 * @throws Failure `overloaded` when the database is unavailable; Error when it refuses what waits
 */
export async function postLog(pool: Pool, workspace: string | undefined): Promise<void> {
  const waiting =
    workspace === undefined
      ? pool.query<{ id: string }>("select distinct workspace_id as id from settlement_log limit $1", [MAX_READ])
      : pool.query<{ id: string }>(
          "select $1 as id where exists (select from settlement_log where workspace_id = $1)",
          [workspace],
        );
  const ids = (await orOverloaded(waiting)).map(({ id }) => id);
  const failed = await orOverloaded(post(pool, ids));
  for (const error of failed.values()) if (!isLocked(error)) throw error;
}
