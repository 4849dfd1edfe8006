import type { WorkspaceTier } from "../config/tiers.ts";
import { SETUP_LOCK } from "../store/migrate.ts";
import type { Pool } from "../store/pool.ts";

/** Workspaces looked at together, in 3 ms, and changed in one transaction, for which their requests wait: 10 ms when all of them change. */
const BATCH = 500;

interface Page {
  /** Null: there are no more. */
  last: string | null;
  changed: string[] | null;
}

/**
 * Makes the tiers of the configuration those of the store, and puts the limits that follow in force for every workspace. Safe when several
 * replicas start at once. Of replicas with different configurations, the one that starts last decides.
 */
export async function applyTiers(pool: Pool, tiers: readonly WorkspaceTier[]): Promise<void> {
  await pool.tx(async (query) => {
    await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
    const names = tiers.map(({ name }) => name);
    await query("delete from tiers where name <> all ($1)", [names]);
    await query(
      `insert into tiers (name, place, threshold_micro, limits) select * from unnest($1::text[], $2::integer[], $3::bigint[], $4::jsonb[])
       on conflict (name) do update set place = excluded.place, threshold_micro = excluded.threshold_micro, limits = excluded.limits`,
      [
        names,
        tiers.map((_, place) => place),
        tiers.map(({ purchased }) => (purchased === undefined ? null : Math.round(purchased * 1e6))),
        tiers.map(({ limits }) => JSON.stringify(limits)),
      ],
    );
  });
  // A workspace that is changed meanwhile is refreshed by that change, with the new tiers.
  for (let last: string | null = ""; last !== null; ) {
    const [page]: Page[] = await pool.query<Page>(
      `select max(a.workspace_id) as last,
         array_agg(a.workspace_id) filter (where (a.tier, a.limits) is distinct from (f.tier, f.limits)) as changed
       from (select * from accounts where workspace_id > $1 order by workspace_id limit $2) a,
         limits_in_force(a.purchased_total_micro, a.tier_override, a.overrides) f`,
      [last, BATCH],
    );
    if (page?.changed) await pool.query("select refresh_limits(variadic $1)", [page.changed]);
    last = page?.last ?? null;
  }
}
