-- Posts the settlements of one workspace: charges, records and usage sums. One that is posted already changes nothing.
-- posts: as in exchange(), of by_replica. a, p: the account, which the caller has locked, and the counters.
-- Returns both as they are afterwards, and {request_id: charge} for the settlements whose charge differs from the one
-- in posts. The caller writes p.
create or replace function post_settlements(inout a accounts, inout p periods, posts jsonb, by_replica text,
  out charges jsonb)
language plpgsql as $$
declare
  charged bigint;  from_granted bigint;  output bigint;
  recorded text[];
  post record;
  earlier bigint;
begin
  charges := '{}';
  if jsonb_path_exists(posts, '$[*].admitted_by') then
    select l.posts, l.charges into posts, charges from late_charges(a, p, posts, by_replica) l;
  end if;
  with item as materialized (
    select * from jsonb_populate_recordset(null::generations, posts) with ordinality
  ), recorded as (
    insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level,
      input_tokens, output_tokens, cached_tokens, credits_micro, outcome, finish_reason, latency_ms, model,
      model_calls, model_input_tokens, model_output_tokens, cost_usd)
    select a.workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level,
      input_tokens, output_tokens, cached_tokens, credits_micro, outcome, finish_reason, latency_ms, model,
      model_calls, model_input_tokens, model_output_tokens, cost_usd
    from item on conflict do nothing returning id
  ), settled as materialized (
    -- Uses granted credit first, in the order of the posts.
    select *, credits_micro as charge, is_answered(outcome, streamed) as answered,
      least(credits_micro, greatest(0,
        a.granted_micro - sum(credits_micro) over (order by ordinality) + credits_micro))::bigint as granted
    from item where id in (select id from recorded)
  ), booked as (
    insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro)
    select a.workspace_id, p.at, 'settlement', request_id, -s.granted, s.granted - charge
    from settled s where charge > 0
  ), used as (
    insert into usage as old (workspace_id, unit, start, key_id, requests, failed_requests,
      input_tokens, output_tokens, cached_tokens, credits_micro)
    select a.workspace_id, x.unit, date_trunc(x.unit, created_at, 'UTC'), key_id,
      count(*) filter (where answered), count(*) filter (where not answered),
      coalesce(sum(input_tokens) filter (where answered), 0), coalesce(sum(output_tokens) filter (where answered), 0),
      coalesce(sum(cached_tokens) filter (where answered), 0), sum(charge)
    from settled, unnest(array['minute', 'hour', 'day']) as x (unit)
    group by 2, 3, 4
    on conflict (workspace_id, unit, start, key_id) do update set
      requests = old.requests + excluded.requests, failed_requests = old.failed_requests + excluded.failed_requests,
      input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens,
      cached_tokens = old.cached_tokens + excluded.cached_tokens,
      credits_micro = old.credits_micro + excluded.credits_micro
  )
  select sum(charge), sum(s.granted), sum(output_tokens), array_agg(request_id)
    into charged, from_granted, output, recorded from settled s;

  if charged > 0 then
    update accounts set granted_micro = granted_micro - from_granted,
        purchased_micro = purchased_micro - charged + from_granted
      where workspace_id = a.workspace_id returning * into a;
  end if;
  for u in 1..4 loop
    p.output_tokens[u] := p.output_tokens[u] + coalesce(output, 0);
    p.spent_micro[u] := p.spent_micro[u] + coalesce(charged - from_granted, 0);
  end loop;
  if cardinality(recorded) is distinct from jsonb_array_length(posts) then
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
end $$;
