-- Ends the grants of a replica that is dead. What it has not posted is not charged.
-- Returns the number of grants. About its settings see exchange().
create or replace function end_grants(w text, of_replica text) returns integer
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  ended int;
begin
  perform from accounts where workspace_id = w for update;
  delete from grants where workspace_id = w and replica = of_replica;
  get diagnostics ended = row_count;
  return ended;
end $$;
