import type { Pool } from "../store/pool.ts";

/** Age of a heartbeat from which its replica is observed, in seconds. */
const QUIET_S = 4;

/** Time without a new heartbeat, observed by this process while the database works, after which a replica is dead. */
const DEAD_MS = 10_000;

/** Time that one replica gets to clean up after a dead one before another one does, in seconds. */
const CLAIM_S = 5;

/** Observes the heartbeats of the other replicas, by the clock of this process, so that no clock has to be right. */
export function createObserver(pool: Pool, replica: string) {
  /** Last heartbeat of each replica that is observed, and since when it is the last. */
  let observed = new Map<string, { beat: number; since: number }>();
  return {
    /** Claims the replicas that count as dead and that no other replica has claimed in the last seconds. */
    async dead(): Promise<string[]> {
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
      const dead = [...observed].flatMap(([id, { since }]) => (now - since >= DEAD_MS ? [id] : []));
      return claim(pool, dead);
    },
    /** Removes those of dead replicas without grants whose last heartbeat is a day old. */
    async forget(ids: readonly string[]): Promise<void> {
      if (ids.length === 0) return;
      await pool.query("delete from replicas where id = any ($1) and beat_at < clock_timestamp() - interval '1 day'", [
        ids,
      ]);
    },
    /** Starts the observation again. */
    reset: () => observed.clear(),
  };
}

/**
 * Claims those dead replicas that no other replica has claimed in the last seconds. A claim in the future was made
 * before the clock was set back and does not count. Repeats for a day, because a replica that counts as dead may run
 * and take something again before its next heartbeat.
 */
async function claim(pool: Pool, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const claimed = await pool.query<{ id: string }>(
    `update replicas set claimed_at = clock_timestamp()
     where id = any ($1) and (claimed_at is null
       or claimed_at not between clock_timestamp() - interval '${CLAIM_S} s' and clock_timestamp())
     returning id`,
    [ids],
  );
  return claimed.map(({ id }) => id);
}
