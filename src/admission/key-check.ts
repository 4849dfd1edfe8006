import type { Clock } from "../contract/clock.ts";
import { Failure } from "../contract/failure.ts";
import { WAITING } from "../overload/bounds.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import type { Caller } from "./authenticate.ts";
import { createBatcher } from "./batch.ts";

/** Time for which the look-up of a key suffices, in milliseconds. */
const FRESH_MS = 500;

/**
 * Creates a check of keys at admission. A request can arrive slowly, and its key can be revoked meanwhile. So a key
 * that was looked up more than half a second ago is looked up again.
 * @returns a function that gets the caller and `performance.now()` before the look-up of its key. It returns undefined
 *   if that suffices. @throws Failure `unauthenticated`, or `overloaded` when the database is unavailable
 */
export function createKeyCheck(
  pool: Pool,
  clock?: Clock,
): (caller: Caller, checkedAt: number) => Promise<void> | undefined {
  const find = createBatcher((ids: string[]) => findOwners(pool, ids, clock), WAITING.lookUps);

  async function check({ keyId, workspaceId }: Caller): Promise<void> {
    if ((await orOverloaded(find(keyId))) !== workspaceId) throw new Failure("unauthenticated");
  }

  return (caller, checkedAt) => (performance.now() - checkedAt < FRESH_MS ? undefined : check(caller));
}

/** @returns for each key the identifier of its workspace; undefined for one that is not valid */
async function findOwners(pool: Pool, ids: string[], clock: Clock | undefined): Promise<(string | undefined)[]> {
  const rows = await pool.query<{ id: string; owner: string }>(
    `select id, workspace_id as owner from api_keys where id = any ($1) and revoked_at is null
       and (expires_at is null or expires_at > coalesce($2, clock_timestamp()))`,
    [[...new Set(ids)], clock ? new Date(clock()) : null],
  );
  const owners = new Map(rows.map(({ id, owner }) => [id, owner]));
  return ids.map((id) => owners.get(id));
}
