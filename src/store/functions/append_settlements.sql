-- Appends the settlements of items that do nothing else to the log. They are posted later, before their grant ends, and
-- before another item of the workspace. Repeating an item changes nothing.
-- items: [{"workspace", "seq", "grant", "after", "held", "running_now", "used_requests", "used_input", "credits",
-- "output", "posts", "subjects"?}]; see exchange(). credits and output: sums of the posts. subjects: [{"subject",
-- "requests", "input", "credits", "output", "held"?, "running"?}], as in report_subjects().
-- Returns the workspaces whose items are in the log, or have been. The grants of the others have ended.
-- About its settings see exchange(). Two small statements for each item take half the time of one for all when there is
-- one item, and 1.3 times when there are 32.
create or replace function append_settlements(by_replica text, items json) returns text[]
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '1s' as $$
declare
  i record;
  last bigint;
  appended text[] := '{}';
begin
  for i in select * from json_to_recordset(items) as i (workspace text, seq bigint, "grant" bigint, after bigint,
      held bigint, running_now bigint, used_requests bigint, used_input bigint, credits bigint, output bigint,
      posts json, subjects json) order by workspace loop
    -- The end of a grant waits for the lock, and then posts what was appended. A grant that has changed since this
    -- statement began is read again, so `last` is right when its log was posted in the meantime.
    select greatest(g.seq, (select max(l.seq) from settlement_log l
        where l.workspace_id = i.workspace and l.replica = by_replica)) into last
      from grants g where g.workspace_id = i.workspace and g.replica = by_replica and g.id = i.grant for key share;
    if last = i.after then
      insert into settlement_log values (i.workspace, by_replica, i.seq, i.credits, i.output, i.held, i.running_now,
        i.used_requests, i.used_input, i.posts, i.subjects) on conflict do nothing;
    end if;
    if last in (i.after, i.seq) then
      appended := appended || i.workspace;
    end if;
  end loop;
  return appended;
end $$;
