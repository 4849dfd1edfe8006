-- Appends the settlements of an item that does nothing else to the log. They are posted later, before their grant ends,
-- and before another item of the workspace. Repeating an item changes nothing.
-- credits and output: sums of the posts. subjects: [{"subject", "requests", "input", "credits", "output", "held"?,
-- "running"?}], as in report_subjects(). About the others and the settings see exchange().
-- Returns whether the item is in the log, or has been. False or null: its grant has ended.
create or replace function append_settlement(by_replica text, workspace text, seq bigint, "grant" bigint, after bigint,
  held bigint, running_now bigint, used_requests bigint, used_input bigint, credits bigint, output bigint, posts json,
  subjects json) returns boolean
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '1s' as $$
declare
  last bigint;
begin
  -- The end of a grant waits for the lock, and then posts what was appended. A grant that has changed since this
  -- statement began is read again, so `last` is right when its log was posted in the meantime.
  select greatest(g.seq, (select max(l.seq) from settlement_log l
      where l.workspace_id = workspace and l.replica = by_replica)) into last
    from grants g where g.workspace_id = workspace and g.replica = by_replica and g.id = "grant" for key share;
  if last = after then
    insert into settlement_log values (workspace, by_replica, seq, credits, output, held, running_now,
      used_requests, used_input, posts, subjects) on conflict do nothing;
  end if;
  return last in (after, seq);
end $$;
