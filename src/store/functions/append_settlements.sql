-- Appends the settlements of items that do nothing else to the log. They are posted later, before their grant ends, and
-- before another item of the workspace. Repeating an item changes nothing.
-- workspaces, seqs, grant_ids, afters: of the items; see exchange(). posts: rows of settlement_log.
-- Returns the workspaces whose items are in the log, or have been. The grants of the others have ended.
-- About its settings see exchange().
create or replace function append_settlements(by_replica text, workspaces text[], seqs bigint[], grant_ids bigint[],
  afters bigint[], posts json) returns text[]
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '1s' as $$
declare
  appended text[];
begin
  with known as materialized (
    select i.*, greatest(g.seq, (select max(l.seq) from settlement_log l
      where l.workspace_id = i.workspace and l.replica = by_replica)) as last
    from (
      select * from unnest(workspaces, seqs, grant_ids, afters) as i (workspace, seq, grant_id, after)
      order by workspace) i
    -- The end of a grant waits for the lock, and then posts what was appended. A grant that has changed since this
    -- statement began is read again, so `last` is right when its log was posted in the meantime.
    cross join lateral (
      select seq from grants where workspace_id = i.workspace and replica = by_replica and id = i.grant_id
      for key share) g
  ), added as (
    insert into settlement_log
    select row.* from known k, json_populate_recordset(null::settlement_log, posts) as row
    where row.workspace_id = k.workspace and k.last = k.after
    on conflict do nothing
  )
  select array_agg(workspace) into appended from known where last in (after, seq);
  return appended;
end $$;
