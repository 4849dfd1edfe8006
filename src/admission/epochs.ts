import { repeat } from "../concurrency/repeat.ts";
import { isLocked, isUnavailable, type Pool } from "../store/pool.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";
import type { Grants } from "./grants.ts";
import { createObserver } from "./observer.ts";

/** Time between two heartbeats, and between two searches for grants to end, in milliseconds. */
const BEAT_MS = 2_000;

/** Largest number of expired responses that are removed in one round. */
const MAX_EXPIRED = 10_000;

/** Age of a heartbeat up to which its replica counts as running, in seconds. */
const LIVE_S = 10;

/**
 * Writes the heartbeat of this replica and ends grants that no replica uses any more:
 * - those of dead replicas, within 18 s of the last heartbeat (4 + 2 until they are observed, 10 + 2 until they count
 *   as dead). What they have not posted is not charged. It repeats that for a day, because a late statement of a
 *   replica can open another grant;
 * - those of this replica that it does not know, because the statement that opened them timed out here and still
 *   succeeded.
 * Removes expired responses of idempotency keys, too.
 * While the database is unavailable no replica can write a heartbeat, so the observation starts again with every
 * failure to reach it.
 * @param hears whether each call-back of another replica arrives; see `Notifications.period`
 * @returns a handle that stops it; resolves after the first heartbeat
 */
export async function keepEpoch(
  pool: Pool,
  replica: string,
  grants: Pick<Grants, "beat" | "find">,
  hears: () => boolean,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  const observer = createObserver(pool, replica);
  await beat();
  // Two loops, because ending grants can take longer than a heartbeat may be late.
  const loops = [beat, endGrants].map((run) => repeat(() => run().catch(failed), BEAT_MS));
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };

  function failed(error: unknown): void {
    observer.reset();
    if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "could not keep the grants");
  }

  async function beat(): Promise<void> {
    const sentAt = performance.now();
    const counts = await pool.query<{ live: number }>(
      `with beat as (
         insert into replicas (id, beat_at) values ($1, clock_timestamp())
         on conflict (id) do update set beat_at = excluded.beat_at)
       select 1 + count(*)::int as live from replicas
       where id <> $1 and abs(extract(epoch from clock_timestamp() - beat_at)) < ${LIVE_S}`,
      [replica],
    );
    for (const { live } of counts) grants.beat(sentAt, live, hears());
  }

  async function endGrants(): Promise<void> {
    const dead = await observer.dead();
    const found = await pool.query<{ workspace: string; replica: string; id: bigint }>(
      "select workspace_id as workspace, replica, id from grants where replica = any ($1) order by workspace_id",
      [[replica, ...dead]],
    );
    for (const grant of found.filter((row) => row.replica === replica)) {
      grants.find(grant.workspace, Number(grant.id));
    }
    let ended = 0;
    for (const grant of found) if (grant.replica !== replica && (await end(grant))) ended++;
    if (ended > 0) log.warn({ grants: ended }, "ended grants of replicas that do not run any more");
    // One that is forgotten with its grants would hold them for ever.
    await observer.forget(dead.filter((id) => found.every((grant) => grant.replica !== id)));
    await removeExpired(pool);
  }

  /** @returns false if another transaction locks the workspace for long, or the database refuses its log */
  async function end({ workspace, replica: of }: { workspace: string; replica: string }): Promise<boolean> {
    try {
      await pool.query("select end_grants($1, $2)", [workspace, of]);
      return true;
    } catch (error) {
      if (isLocked(error)) return false;
      if (isUnavailable(error)) throw error;
      log.error({ workspace, cause: errorFacts(error) }, "could not end a grant");
      return false;
    }
  }
}

async function removeExpired(pool: Pool): Promise<void> {
  await pool.query(
    `delete from idempotency where expires_at < clock_timestamp() and (workspace_id, key) in
       (select workspace_id, key from idempotency where expires_at < clock_timestamp() limit ${MAX_EXPIRED})`,
  );
}
