import { setTimeout as sleep } from "node:timers/promises";
import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import { createObserver } from "./observer.ts";

/** Time between two heartbeats, and between two searches for leases to release, in milliseconds. */
const BEAT_MS = 2_000;

/** Largest number of expired responses that are removed in one round. */
const MAX_EXPIRED = 10_000;

/**
 * Writes the heartbeat of this replica, and releases leases whose request no replica runs any more, without a charge:
 * - those of dead replicas, within 18 s of the last heartbeat (4 + 2 until they are observed, 10 + 2 until they count
 *   as dead);
 * - those of this replica that it does not know, because the statement that opened them timed out here and still
 *   succeeded.
 * Removes expired responses of idempotency keys, too. While the database is unavailable no replica can write a
 * heartbeat, so the observation starts again with every failure to reach it.
 * @param holds whether this process runs a request or still has to settle it
 * @returns a handle that stops it; resolves after the first heartbeat
 */
export async function keepAlive(
  pool: Pool,
  replica: string,
  holds: (requestId: string) => boolean,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  const observer = createObserver(pool, replica);
  await beat();
  const stopping = new AbortController();
  // Two loops, because a release can take longer than a heartbeat may be late.
  const loops = [beat, releaseLeases].map((run) => repeat(BEAT_MS, run, stopping.signal, failed));
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };

  function failed(error: unknown): void {
    observer.reset();
    if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "could not keep the leases");
  }

  async function beat(): Promise<void> {
    await pool.query(
      `insert into replicas (id, beat_at) values ($1, clock_timestamp())
       on conflict (id) do update set beat_at = excluded.beat_at`,
      [replica],
    );
  }

  async function releaseLeases(): Promise<void> {
    const leases = await pool.query<{ workspace_id: string; request_id: string; replica: string }>(
      "select workspace_id, request_id, replica from leases where replica = any ($1) order by workspace_id",
      [[replica, ...(await observer.dead())]],
    );
    const orphaned = leases.filter((lease) => lease.replica !== replica || !holds(lease.request_id));
    for (const [workspaceId, group] of Map.groupBy(orphaned, (lease) => lease.workspace_id)) {
      const ids = group.map((lease) => lease.request_id);
      await pool.query("select release_leases($1, $2)", [workspaceId, ids]);
    }
    if (orphaned.length > 0) log.warn({ leases: orphaned.length }, "released leases that no replica runs any more");
    await removeExpired(pool);
  }
}

async function removeExpired(pool: Pool): Promise<void> {
  await pool.query(
    `delete from idempotency where expires_at < clock_timestamp() and (workspace_id, key) in
       (select workspace_id, key from idempotency where expires_at < clock_timestamp() limit ${MAX_EXPIRED})`,
  );
}

/** Runs a task, then waits, and repeats until the signal aborts. */
async function repeat(
  ms: number,
  run: () => Promise<void>,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    await run().catch(failed);
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }
}
