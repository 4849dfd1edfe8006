-- Posts the settlements of an item of exchange() alone. One that is posted already changes nothing.
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
  insert into settlement_log values (a.workspace_id, '', 0, 0, 0, 0, 0, 0, 0, rows_of_posts(posts));
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
  return charges;
end $$;
