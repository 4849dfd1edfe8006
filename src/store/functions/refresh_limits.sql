-- Recomputes tier and limits of workspaces, which apply to requests admitted afterwards. Call it in the transaction
-- that changes a tier, an override or the total purchased.
create or replace function refresh_limits(variadic ws text[]) returns void language plpgsql as $$
begin
  -- Locks first, so that the update reads the newest tiers together with the newest account.
  perform from accounts where workspace_id = any (ws) order by workspace_id for update;
  update accounts a set (tier, limits) =
      (select f.tier, f.limits from limits_in_force(a.purchased_total_micro, a.tier_override, a.overrides) f)
    where a.workspace_id = any (ws);
  perform call_back(variadic ws);
end $$;
