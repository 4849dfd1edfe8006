import { setTimeout as sleep } from "node:timers/promises";
import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";

/** Time between two heartbeats, and between two searches for leases to release, in milliseconds. */
const BEAT_MS = 2_000;

/** Age of a heartbeat from which its replica is observed, in seconds. */
const QUIET_S = 4;

/** Time without a new heartbeat, observed by this process while the database works, after which a replica is dead. */
const DEAD_MS = 10_000;

/** Time that one replica gets to release the leases of a dead one before another one does, in seconds. */
const CLAIM_S = 5;

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
      [[replica, ...(await claim(pool, await observer.dead()))]],
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

interface Observer {
  /** Identifiers of the replicas that count as dead. */
  dead(): Promise<string[]>;
  /** Starts the observation again. */
  reset(): void;
}

/** Observes the heartbeats of the other replicas, by the clock of this process, so that no clock has to be right. */
function createObserver(pool: Pool, replica: string): Observer {
  /** Last heartbeat of each replica that is observed, and since when it is the last. */
  let observed = new Map<string, { beat: number; since: number }>();
  return {
    async dead() {
      // abs: a clock that was set back must not make a dead replica look alive.
      const quiet = await pool.query<{ id: string; beat_at: Date }>(
        `select id, beat_at from replicas
         where id <> $1 and abs(extract(epoch from clock_timestamp() - beat_at)) > ${QUIET_S}`,
        [replica],
      );
      const now = performance.now();
      const before = observed;
      observed = new Map(
        quiet.map(({ id, beat_at }) => {
          const known = before.get(id);
          const beat = beat_at.getTime();
          return [id, known?.beat === beat ? known : { beat, since: now }];
        }),
      );
      return [...observed].flatMap(([id, { since }]) => (now - since >= DEAD_MS ? [id] : []));
    },
    reset: () => observed.clear(),
  };
}

/**
 * Claims those dead replicas that no other replica has claimed in the last seconds. A claim in the future was made
 * before the clock was set back and does not count. Repeats for a day, because a replica that counts as dead may run
 * and open another lease before its next heartbeat.
 */
async function claim(pool: Pool, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  await pool.query("delete from replicas where id = any ($1) and beat_at < clock_timestamp() - interval '1 day'", [
    ids,
  ]);
  const claimed = await pool.query<{ id: string }>(
    `update replicas set claimed_at = clock_timestamp()
     where id = any ($1) and (claimed_at is null
       or claimed_at not between clock_timestamp() - interval '${CLAIM_S} s' and clock_timestamp())
     returning id`,
    [ids],
  );
  return claimed.map(({ id }) => id);
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
