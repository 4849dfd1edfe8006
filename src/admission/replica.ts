import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";

/** How often a replica says that it lives, and looks for others that do not, in milliseconds. */
const BEAT_MS = 2_000;
/** Silence, seen by this process with its own eyes and a working database, after which a replica counts as dead, in milliseconds. */
const DEAD_MS = 12_000;

/**
 * Keeps the leases of this replica alive and releases those of dead ones, uncharged, at most 12 s + 2 × 2 s after their last sign of life.
 * While the database is away nobody can give a sign, so the time starts anew with every failure to reach it.
 * @returns what ends it; the replica's own row is removed then, as it holds no lease any more
 */
export async function keepAlive(pool: Pool, replica: string, log: Log): Promise<{ stop(): Promise<void> }> {
  const seen = new Map<string, { beat: number; since: number }>();
  await beat();
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(round);
  }, BEAT_MS);
  return {
    async stop() {
      clearInterval(timer);
      await running;
      await pool.query("delete from replicas where id = $1", [replica]).catch(() => undefined);
    },
  };

  async function round(): Promise<void> {
    try {
      await beat();
      await release(await dead());
    } catch (error) {
      seen.clear();
      if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "could not look after leases");
    }
  }

  async function beat(): Promise<void> {
    await pool.query(
      "insert into replicas (id, beat_at) values ($1, clock_timestamp()) on conflict (id) do update set beat_at = excluded.beat_at",
      [replica],
    );
  }

  async function dead(): Promise<string[]> {
    const rows = await pool.query<{ id: string; beat_at: Date }>(
      `select r.id, r.beat_at from replicas r
       union all select distinct l.replica, 'epoch'::timestamptz from leases l where not exists (select from replicas r where r.id = l.replica)`,
    );
    const now = performance.now();
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id);
    return rows.flatMap(({ id, beat_at }) => {
      const beat = beat_at.getTime();
      const before = seen.get(id);
      if (before?.beat !== beat) seen.set(id, { beat, since: now });
      return id !== replica && before?.beat === beat && now - before.since >= DEAD_MS ? [id] : [];
    });
  }

  async function release(replicas: string[]): Promise<void> {
    if (replicas.length === 0) return;
    const workspaces = await pool.query<{ id: string }>(
      "select distinct workspace_id as id from leases where replica = any($1) order by 1",
      [replicas],
    );
    let count = 0;
    for (const { id } of workspaces) {
      const [row] = await pool.query<{ released: number }>("select release_leases($1, $2) as released", [id, replicas]);
      count += row?.released ?? 0;
    }
    await pool.query("delete from replicas where id = any($1)", [replicas]);
    log.warn({ replicas: replicas.length, leases: count }, "released the leases of dead replicas");
  }
}
