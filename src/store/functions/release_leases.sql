-- Releases the leases of requests that no replica runs any more, without a charge. Requests that were settled in the
-- meantime are left alone.
-- at: the current time; tests set it. Returns the number of released leases. About its settings see open_leases().
create or replace function release_leases(w text, ids text[], at timestamptz default null) returns integer
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  t timestamptz;
  released_count int;
  freed bigint;
begin
  perform from accounts where workspace_id = w for update;
  t := coalesce(at, clock_timestamp());
  with released as (
    delete from leases where workspace_id = w and request_id = any (ids) returning *
  ), booked as (
    insert into ledger (workspace_id, at, kind, reference, held_micro)
      select w, t, 'release', request_id, -hold_micro from released
  ), forgotten as (
    delete from idempotency
      where workspace_id = w and key = any (array(select idempotency_key from released)) and request_id = any (ids)
  )
  select count(*), sum(hold_micro) into released_count, freed from released;
  if released_count > 0 then
    update accounts set held_micro = held_micro - freed, running = running - released_count where workspace_id = w;
  end if;
  return released_count;
end $$;
