import type { WorkspaceTier } from "../config/tiers.ts";
import { SETUP_LOCK } from "../store/migrate.ts";
import type { Pool } from "../store/pool.ts";

/** Workspaces that are changed in one transaction. Their requests wait for it, at most about 10 ms. */
const BATCH = 500;

interface Page {
  /** Identifier of the last workspace; null: there are no more. */
  last: string | null;
  changed: string[] | null;
}

/**
 * Stores the tiers of the configuration, and applies their limits to every workspace. Several replicas may run it at
 * once. When their configurations differ, that of the last one to start applies.
 */
export async function applyTiers(pool: Pool, tiers: readonly WorkspaceTier[]): Promise<void> {
  await pool.tx(async (query) => {
    await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
    const names = tiers.map(({ name }) => name);
    await query("delete from tiers where name <> all ($1)", [names]);
    await query(
      `insert into tiers (name, place, threshold_micro, limits)
       select * from unnest($1::text[], $2::integer[], $3::bigint[], $4::jsonb[])
       on conflict (name) do update
         set place = excluded.place, threshold_micro = excluded.threshold_micro, limits = excluded.limits`,
      [
        names,
        tiers.map((_, place) => place),
        tiers.map(({ purchased }) => (purchased === undefined ? null : Math.round(purchased * 1e6))),
        tiers.map(({ limits }) => JSON.stringify(limits)),
      ],
    );
  });
  // A concurrent change of a workspace applies the new tiers to it.
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
