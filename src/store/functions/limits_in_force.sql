-- Tier and limits of an account. The tier is the one an operator assigned, if it exists, else the last one whose
-- threshold is reached. The limits are those of the tier, replaced by those an operator set, where null removes a
-- limit.
create or replace function limits_in_force(purchased_total_micro bigint, tier_override text, overrides jsonb)
returns table (tier text, limits jsonb) language sql stable rows 1 as $$
  select t.name, jsonb_strip_nulls(t.limits || overrides) from tiers t
  where t.name = tier_override or t.threshold_micro <= purchased_total_micro
  order by (t.name = tier_override) is true desc, t.place desc limit 1
$$;
