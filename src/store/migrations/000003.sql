-- Owners, operators' bookings, and the record of who changed what.

-- The tier in force stands in `accounts` alone.
alter table workspaces drop column tier;

insert into accounts (workspace_id) select id from workspaces on conflict do nothing;

-- One token for each workspace; a new one replaces the old. Kept whole on each database, as keys are.
create table owner_tokens (
  workspace_id text primary key references workspaces (id) on delete cascade,
  secret_hash bytea not null unique,            -- SHA-256; the secret itself is not kept
  created_at timestamptz not null default now(),
  expires_at timestamptz                        -- null: never
);

-- What people changed, without secrets. Rows are only ever added, and outlive what they tell of.
create sequence audit_id;
create table audit (
  workspace_id text not null,
  at timestamptz not null default clock_timestamp(),
  id bigint not null default nextval('audit_id'),
  actor_kind text not null check (actor_kind in ('operator', 'owner', 'service')),
  actor_id text not null,                       -- tok_…, from the token's hash; or what the service did it for
  action text not null,                         -- such as key.create
  details jsonb not null default '{}',
  primary key (workspace_id, at, id)
);

-- Until the configuration's tiers are written, there are no limits.
insert into tiers (name, place, threshold_micro, limits) values ('free', 0, 0, '{}') on conflict do nothing;

-- Tier and limits of an account: the tier given by hand while there is such a tier, else the last whose threshold is reached; over its
-- limits those given by hand, where null is none.
create function limits_in_force(purchased_total_micro bigint, tier_override text, overrides jsonb) returns table (tier text, limits jsonb)
language sql stable rows 1 as $$
  select t.name, jsonb_strip_nulls(t.limits || overrides) from tiers t
  where t.name = tier_override or t.threshold_micro <= purchased_total_micro
  order by (t.name = tier_override) is true desc, t.place desc limit 1
$$;

-- Puts the limits of workspaces in force anew; to be called in the transaction that changes a tier, an override or what was purchased.
create function refresh_limits(variadic ws text[]) returns void language plpgsql as $$
begin
  -- The lock first, so that the update sees the newest tiers beside the newest account.
  perform from accounts where workspace_id = any (ws) order by workspace_id for update;
  update accounts a set (tier, limits) =
      (select f.tier, f.limits from limits_in_force(a.purchased_total_micro, a.tier_override, a.overrides) f)
    where a.workspace_id = any (ws);
end $$;

-- Books credit of a workspace once under a reference. A negative grant takes back what is granted and not held: what runs was admitted on
-- the strength of the granted part, and must not come to be paid from the purchased one.
-- verdict: booked; earlier, when the same was booked before; other, when something else was booked under the reference; too_low, when so
-- much cannot be taken back; too_high, when a figure would pass a trillion credits.
create function book_credit(w text, as_kind text, ref text, amount bigint, at timestamptz default null,
  out verdict text, out booked_at timestamptz, out granted bigint, out purchased bigint, out held bigint) language plpgsql as $$
declare
  most constant bigint := 1000000000000000000;
  a accounts%rowtype;
  b bookings%rowtype;
  to_granted bigint := case when as_kind = 'grant' then amount else 0 end;
  to_purchased bigint := case when as_kind = 'purchase' then amount else 0 end;
begin
  select * into strict a from accounts where workspace_id = w for update;
  select * into b from bookings where workspace_id = w and reference = ref;
  if found then
    verdict := case when b.kind = as_kind and b.amount_micro = amount then 'earlier' else 'other' end;
    booked_at := b.at;
  elsif to_granted < 0 and -to_granted > greatest(0, a.granted_micro - a.held_micro) then
    verdict := 'too_low';
  elsif a.granted_micro + to_granted > most or a.purchased_total_micro + to_purchased > most then
    verdict := 'too_high';
  else
    verdict := 'booked';
    -- After the lock, so that the ledger's times never run backwards.
    booked_at := coalesce(at, clock_timestamp());
    insert into bookings (workspace_id, reference, kind, amount_micro, at) values (w, ref, as_kind, amount, booked_at);
    insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro)
      values (w, booked_at, case when amount < 0 then 'adjustment' else as_kind end, ref, to_granted, to_purchased);
    update accounts set granted_micro = granted_micro + to_granted, purchased_micro = purchased_micro + to_purchased,
        purchased_total_micro = purchased_total_micro + to_purchased
      where workspace_id = w returning * into a;
    if to_purchased > 0 then
      perform refresh_limits(w);
    end if;
  end if;
  granted := a.granted_micro;
  purchased := a.purchased_micro;
  held := a.held_micro;
end $$;
