-- Ends the grants of a replica that is dead, after it has posted what waits in the log. What the replica has not sent
-- is not charged.
-- at: the current time; tests set it.
-- Returns the number of grants. About its settings see exchange().
create or replace function end_grants(w text, of_replica text, at timestamptz default null) returns integer
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '1s' as $$
declare
  ended int;
begin
  perform from accounts where workspace_id = w for update;
  -- Waits for what the replica appends, and refuses what it appends later.
  perform from grants where workspace_id = w and replica = of_replica for update;
  perform post_settlements(array[w], at);
  delete from subject_holds h using grants g
    where g.workspace_id = w and g.replica = of_replica and h.workspace_id = w and h.grant_id = g.id;
  delete from subject_grants s using grants g
    where g.workspace_id = w and g.replica = of_replica and s.workspace_id = w and s.grant_id = g.id;
  delete from grants where workspace_id = w and replica = of_replica;
  get diagnostics ended = row_count;
  return ended;
end $$;
