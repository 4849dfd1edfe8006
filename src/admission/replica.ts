import { setTimeout as sleep } from "node:timers/promises";
import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";

/** How often a replica says that it lives, and looks for leases that nobody runs, in milliseconds. */
const BEAT_MS = 2_000;

/** Age of a sign of life from which it is watched, in seconds. */
const QUIET_S = 4;

/** Time without another sign, seen by this process with its own eyes and a working database, after which a replica counts as dead. */
const DEAD_MS = 10_000;

/** Time that one replica gets to release the leases of a dead one before another does, in seconds. */
const CLAIM_S = 5;

/** Expired answers that are removed in one round. */
const MAX_ANSWERS = 10_000;

/**
 * Keeps the leases of this replica alive, and releases those that nobody runs any more, uncharged: those of dead replicas, within 18 s of
 * their last sign of life (4 + 2 until it is watched, 10 + 2 until it is dead), and those of this one that it knows nothing of, because the
 * statement that took them was given up and yet arrived. Answers that were kept for idempotency keys are removed when they expire.
 * While the database is away nobody can give a sign, so the time starts anew with every failure to reach it.
 * @param holds whether a request runs in this process, or waits in it to be settled
 * @returns what ends it, after the first sign
 */
export async function keepAlive(
  pool: Pool,
  replica: string,
  holds: (requestId: string) => boolean,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  /** Replicas that are watched: their last sign, and since when there was no other. */
  let watched = new Map<string, { beat: number; since: number }>();
  await beat();
  const stopping = new AbortController();
  // Two of them, because a release may take longer than a sign of life can wait.
  const loops = [
    every(BEAT_MS, beat, stopping.signal, failed),
    every(BEAT_MS, lookAfterLeases, stopping.signal, failed),
  ];
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };

  function failed(error: unknown): void {
    watched.clear();
    if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "could not look after leases");
  }

  async function beat(): Promise<void> {
    await pool.query(
      "insert into replicas (id, beat_at) values ($1, clock_timestamp()) on conflict (id) do update set beat_at = excluded.beat_at",
      [replica],
    );
  }

  async function lookAfterLeases(): Promise<void> {
    const leases = await pool.query<{ workspace_id: string; request_id: string; replica: string }>(
      "select workspace_id, request_id, replica from leases where replica = any ($1) order by workspace_id",
      [[replica, ...(await claim(await dead()))]],
    );
    const stray = leases.filter((lease) => lease.replica !== replica || !holds(lease.request_id));
    for (const [workspaceId, group] of Map.groupBy(stray, (lease) => lease.workspace_id)) {
      const ids = group.map((lease) => lease.request_id);
      await pool.query("select release_leases($1, $2)", [workspaceId, ids]);
    }
    if (stray.length > 0) log.warn({ leases: stray.length }, "released leases that nobody runs any more");
    await pool.query(
      `delete from idempotency where expires_at < clock_timestamp() and (workspace_id, key) in
         (select workspace_id, key from idempotency where expires_at < clock_timestamp() limit ${MAX_ANSWERS})`,
    );
  }

  async function dead(): Promise<string[]> {
    // In the future, too: a clock that was set back must not hide the dead.
    const quiet = await pool.query<{ id: string; beat_at: Date }>(
      `select id, beat_at from replicas
       where id <> $1 and abs(extract(epoch from clock_timestamp() - beat_at)) > ${QUIET_S}`,
      [replica],
    );
    const now = performance.now();
    const before = watched;
    watched = new Map(
      quiet.map(({ id, beat_at }) => {
        const known = before.get(id);
        const beat = beat_at.getTime();
        return [id, known?.beat === beat ? known : { beat, since: now }];
      }),
    );
    return [...watched].flatMap(([id, { since }]) => (now - since >= DEAD_MS ? [id] : []));
  }

  /**
   * Those of the dead that no other replica is about to look after. They are looked after again and again for a day, because a replica that
   * was taken for dead may live, and take another lease before it says so.
   */
  async function claim(ids: string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    await pool.query("delete from replicas where id = any ($1) and beat_at < clock_timestamp() - interval '1 day'", [
      ids,
    ]);
    const claimed = await pool.query<{ id: string }>(
      `update replicas set claimed_at = clock_timestamp()
       where id = any ($1) and (claimed_at is null or claimed_at < clock_timestamp() - interval '${CLAIM_S} s') returning id`,
      [ids],
    );
    return claimed.map(({ id }) => id);
  }
}

/** Runs something again and again, with pauses between, until the signal. */
async function every(
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
