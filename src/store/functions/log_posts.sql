-- Puts the posts of items of exchange() into the log, so that one statement posts those of all workspaces: of items
-- that continue the grant that the database has, and keep no part of a minute, which could be over. The caller has
-- locked the accounts, posts the log, and then executes the items, which replace their grants: so the rows name none.
-- Returns the workspaces of these items.
create or replace function log_posts(by_replica text, items jsonb) returns text[] language plpgsql as $$
declare
  logged text[];
begin
  if not jsonb_path_exists(items, '$[*].posts[*]') then
    return '{}';
  end if;
  with added as (
    insert into settlement_log
    select i.workspace, '', 0, 0, 0, 0, 0, 0, 0, rows_of_posts(i.posts)
    from jsonb_to_recordset(items) as i (workspace text, "grant" bigint, after bigint, requests bigint, input bigint,
      output bigint, posts jsonb)
    cross join lateral (
      select seq from grants
      where workspace_id = i.workspace and replica = by_replica and id = i."grant" limit 1) g
    where i.posts <> '[]' and greatest(i.requests, i.input, i.output, 0) = 0
      and not jsonb_path_exists(i.posts, '$[*].admitted_by')
      and i.after = greatest(g.seq, (select max(l.seq) from settlement_log l
        where l.workspace_id = i.workspace and l.replica = by_replica))
    returning workspace_id
  )
  select coalesce(array_agg(workspace_id), '{}') into logged from added;
  return logged;
end $$;
