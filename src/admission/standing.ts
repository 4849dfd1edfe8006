import type { Clock } from "../contract/clock.ts";
import { WAITING } from "../overload/bounds.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import { createBatcher } from "./batch.ts";
import { type Refusal, refusalFailure } from "./escrow/refusal.ts";

/** Time for which a workspace counts as able to make requests after one was admitted, in milliseconds. */
const GOOD_MS = 60_000;

/** Most workspaces that are remembered; about 2 MB. */
const MAX_KNOWN = 10_000;

/** Creates what this process knows about the limits and the credit of workspaces. */
export function createStanding(pool: Pool, clock?: Clock) {
  /** Workspaces that can make requests, and when that was last known, the oldest first. */
  const good = new Map<string, number>();
  const lookUp = createBatcher((_: string, ids: string[]) => readRefusals(pool, ids, clock), WAITING.lookUps);

  /** Notes whether admission has accepted a request of the workspace. */
  function note(workspaceId: string, isAdmitted: boolean): void {
    good.delete(workspaceId);
    if (!isAdmitted) return;
    good.set(workspaceId, performance.now());
    const [oldest] = good.keys();
    if (good.size > MAX_KNOWN && oldest !== undefined) good.delete(oldest);
  }

  async function ask(workspaceId: string): Promise<void> {
    const refusal = await orOverloaded(lookUp("standing", workspaceId));
    note(workspaceId, refusal === null);
    if (refusal) throw refusalFailure(refusal);
  }

  return {
    /**
     * Refuses a request that admission would refuse however small it is, before its body is read. It reserves nothing.
     * For a workspace whose requests are admitted it returns at once; otherwise it asks the database.
     * @throws Failure naming the limit, or `insufficient_credit`; `overloaded` when the database is unavailable
     */
    check(workspaceId: string): Promise<void> | undefined {
      const since = good.get(workspaceId);
      return since !== undefined && performance.now() - since < GOOD_MS ? undefined : ask(workspaceId);
    },
    note,
  };
}

async function readRefusals(pool: Pool, ids: string[], clock: Clock | undefined): Promise<(Refusal | null)[]> {
  // The smallest request has one token of input and costs one micro-credit.
  const rows = await pool.query<{ id: string; refusal: Refusal | null }>(
    `select a.workspace_id as id,
       coalesce(check_rate_limits(a, p, u.running, 1), check_credit(a, p, u.held, 1)) as refusal
     from accounts a, periods_at(a.workspace_id, coalesce($2, clock_timestamp())) p, in_use(a.workspace_id) u
     where a.workspace_id = any ($1)`,
    [[...new Set(ids)], clock ? new Date(clock()) : null],
  );
  const found = new Map(rows.map(({ id, refusal }) => [id, refusal]));
  return ids.map((id) => found.get(id) ?? null);
}
