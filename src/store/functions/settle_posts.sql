-- Posts the settlements of an item of exchange() at once. One that is posted already changes nothing.
-- posts: as in exchange(), of by_replica. a, p: the account, which the caller has locked, and the counters. The caller
-- reads both again.
-- Returns {request_id: charge} for the settlements whose charge differs from the one in posts.
create or replace function settle_posts(a accounts, p periods, posts jsonb, by_replica text) returns jsonb
language plpgsql as $$
declare
  charges jsonb := '{}';
  post record;
  earlier bigint;
begin
  if jsonb_path_exists(posts, '$[*].admitted_by') then
    select l.posts, l.charges into posts, charges from late_charges(a, p, posts, by_replica) l;
  end if;
  -- Nothing is said about the grant, because the caller replaces it.
  insert into settlement_log
    select row.* from jsonb_populate_recordset(jsonb_populate_record(null::settlement_log, jsonb_build_object(
      'workspace_id', a.workspace_id, 'replica', by_replica, 'seq', 0, 'held_micro', 0, 'running_now', 0,
      'used_requests', 0, 'used_input', 0)), posts) as row
    on conflict do nothing;
  if post_settlements(array[a.workspace_id], p.clock) <> jsonb_array_length(posts) then
    -- One query for each, so that it reads one partition.
    for post in select * from jsonb_to_recordset(posts)
        as i (id text, request_id text, created_at timestamptz, credits_micro bigint) loop
      select g.credits_micro into earlier from generations g
        where g.workspace_id = a.workspace_id and g.created_at = post.created_at and g.id = post.id;
      if earlier <> post.credits_micro then
        charges := charges || jsonb_build_object(post.request_id, earlier::text);
      end if;
    end loop;
  end if;
  if jsonb_path_exists(posts, '$[*].key') then
    perform keep_responses(a.workspace_id, posts);
  end if;
  return charges;
end $$;
