-- Posts the settlements that wait in the log of workspaces: records, ledger, balances, usage sums and counters. One
-- that is posted already changes nothing. What it charges is taken from the grant that contained it.
-- reading: the clock; null: its time after the accounts are locked.
-- Each table is searched for the workspaces, so that no plan reads it completely.
-- Returns the number of settlements. About its settings see exchange().
create or replace function post_settlements(ws text[], reading timestamptz default null) returns bigint
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '1s' as $$
declare
  times periods[];
  posted bigint;
begin
  perform from accounts a where a.workspace_id = any (ws) order by a.workspace_id for update;
  times := array(select periods_at(x.w, coalesce(reading, clock_timestamp())) from unnest(ws) as x (w)
    where (select true from settlement_log l where l.workspace_id = x.w limit 1));
  if cardinality(times) = 0 then
    return 0;
  end if;
  with period as materialized (
    select * from unnest(times)
  ), entry as (
    delete from settlement_log l where l.workspace_id = any (ws)
      and exists (select from period p where p.workspace_id = l.workspace_id)
    returning *
  ), item as materialized (
    select distinct on (r.workspace_id, r.id) r as generation, r.*, e.seq
    from entry e
    cross join lateral json_populate_recordset(
      jsonb_populate_record(null::generations, jsonb_build_object('workspace_id', e.workspace_id)), e.posts) as r
    order by r.workspace_id, r.id, e.seq
  ), recorded as (
    insert into generations select (generation).* from item on conflict do nothing returning workspace_id, id
  ), drafted as (
    insert into outcomes (workspace_id, created_at, id, drafts)
    select e.workspace_id, d.created_at, d.id, d.drafts
    from entry e
    cross join lateral json_to_recordset(e.posts) as d (id text, created_at timestamptz, drafts json)
    where strpos(e.posts::text, '"drafts":') > 0 and d.drafts is not null
      and ((e.workspace_id, d.id) in (select r.workspace_id, r.id from recorded r)) is true
    on conflict do nothing
  ), settled as materialized (
    -- Uses granted credit first.
    select i.*, is_answered(outcome, streamed) as answered, p.at,
      least(credits_micro, greatest(0, a.granted_micro
        - sum(credits_micro) over (partition by a.workspace_id order by seq, id) + credits_micro))::bigint as granted
    from item i join accounts a using (workspace_id) join period p using (workspace_id)
    where a.workspace_id = any (ws)
      -- `is true` makes Postgres look up rows by hash. It would join them in a time that grows with their square.
      and ((i.workspace_id, i.id) in (select r.workspace_id, r.id from recorded r)) is true
  ), booked as (
    insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro)
    select workspace_id, at, 'settlement', request_id, -granted, granted - credits_micro
    from settled where credits_micro > 0
  ), of_minute as materialized (
    -- Summed once, so that the sums of minute, hour and day add up few rows.
    select workspace_id, date_trunc('minute', created_at, 'UTC') as start, key_id,
      count(*) filter (where answered) as answers, count(*) filter (where not answered) as failures,
      sum(input_tokens) filter (where answered) as input, sum(output_tokens) filter (where answered) as output,
      sum(cached_tokens) filter (where answered) as cached, sum(credits_micro) as charged,
      count(*) filter (where answered and level = 'low') as low,
      count(*) filter (where answered and level = 'medium') as medium,
      count(*) filter (where answered and level = 'high') as high,
      sum(credits_micro) filter (where level = 'low') as low_charged,
      sum(credits_micro) filter (where level = 'medium') as medium_charged,
      sum(credits_micro) filter (where level = 'high') as high_charged
    from settled group by 1, 2, 3
  ), used as (
    insert into usage as old (workspace_id, unit, start, key_id, requests, failed_requests,
      input_tokens, output_tokens, cached_tokens, credits_micro, level_requests, level_credits_micro)
    select workspace_id, x.unit, date_trunc(x.unit, start, 'UTC'), key_id, sum(answers), sum(failures),
      coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cached), 0), sum(charged),
      array[sum(low), sum(medium), sum(high)],
      array[coalesce(sum(low_charged), 0), coalesce(sum(medium_charged), 0), coalesce(sum(high_charged), 0)]
    from of_minute, unnest(array['minute', 'hour', 'day']) as x (unit)
    group by 1, 2, 3, 4
    on conflict (workspace_id, unit, start, key_id) do update set
      requests = old.requests + excluded.requests, failed_requests = old.failed_requests + excluded.failed_requests,
      input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens,
      cached_tokens = old.cached_tokens + excluded.cached_tokens,
      credits_micro = old.credits_micro + excluded.credits_micro,
      level_requests = sum_by_place(old.level_requests, excluded.level_requests),
      level_credits_micro = sum_by_place(old.level_credits_micro, excluded.level_credits_micro)
  ), used_by_subject as (
    insert into usage_subjects as old (workspace_id, unit, start, subject, requests, failed_requests,
      input_tokens, output_tokens, cached_tokens, credits_micro)
    select workspace_id, x.unit, date_trunc(x.unit, created_at, 'UTC'), s.subject,
      count(*) filter (where answered), count(*) filter (where not answered),
      coalesce(sum(input_tokens) filter (where answered), 0), coalesce(sum(output_tokens) filter (where answered), 0),
      coalesce(sum(cached_tokens) filter (where answered), 0), sum(credits_micro)
    from settled cross join unnest(array['minute', 'hour', 'day']) as x (unit)
    cross join lateral subjects_of(end_user, tags) s
    where end_user is not null or tags is not null
    group by 1, 2, 3, 4
    on conflict (workspace_id, unit, start, subject) do update set
      requests = old.requests + excluded.requests, failed_requests = old.failed_requests + excluded.failed_requests,
      input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens,
      cached_tokens = old.cached_tokens + excluded.cached_tokens,
      credits_micro = old.credits_micro + excluded.credits_micro
  ), freed as (
    -- By hash, too: there is a row for each request that runs under a cap.
    delete from subject_holds h where h.workspace_id = any (ws)
      and ((h.workspace_id, h.request_id) in (select s.workspace_id, s.request_id from settled s)) is true
  ), of_subject as materialized (
    -- What the items have said about the headroom of each subject.
    select e.workspace_id, e.replica, x.subject, sum(x.credits)::bigint as charged, sum(x.output)::bigint as output,
      sum(x.requests)::bigint as requests, sum(x.input)::bigint as input,
      (array_agg(x.held order by e.seq desc) filter (where x.held is not null))[1] as held,
      (array_agg(x.running order by e.seq desc) filter (where x.held is not null))[1] as running
    from entry e
    cross join lateral json_to_recordset(e.subjects) as x (subject text, requests bigint, input bigint, credits bigint,
      output bigint, held bigint, running bigint)
    where e.subjects is not null group by 1, 2, 3
  ), share as materialized (
    -- By the primary key whatever the statistics say; see report_subjects().
    select s.*, o.requests as admitted, o.input, o.charged, o.output, o.held, o.running as runs
    from of_subject o
    join grants g on g.workspace_id = any (ws) and g.workspace_id = o.workspace_id and g.replica = o.replica
    cross join lateral (
      select * from subject_grants s
      where s.workspace_id = o.workspace_id and s.subject = o.subject and s.grant_id = g.id offset 0) s
  ), subject_granted as (
    insert into subject_grants
      select workspace_id, subject, grant_id, at, greatest(0, credit_micro - charged), coalesce(held, held_micro),
        running, coalesce(runs, running_now), greatest(0, requests - admitted), greatest(0, input_tokens - input),
        greatest(0, output_tokens - output), true
      from share
      on conflict (workspace_id, subject, grant_id) do update set credit_micro = excluded.credit_micro,
        held_micro = excluded.held_micro, running_now = excluded.running_now, requests = excluded.requests,
        input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, has_idle = true
  ), capped as (
    insert into subject_periods
      select p.workspace_id, p.subject, u.at, add_to_periods(p.requests, p.at, u.at, u.requests),
        add_to_periods(p.input_tokens, p.at, u.at, u.input),
        add_to_periods(p.output_tokens, p.at, u.at, array_fill(u.output, array[5])),
        add_to_periods(p.spent_micro, p.at, u.at, array_fill(u.charged, array[5]))
      from (
        select x.workspace_id, x.subject, w.at, sum(x.output)::bigint as output, sum(x.charged)::bigint as charged,
          array[sum(x.requests[1]), sum(x.requests[2]), sum(x.requests[3]), sum(x.requests[4]),
            sum(x.requests[5])]::bigint[] as requests,
          array[sum(x.input[1]), sum(x.input[2]), sum(x.input[3]), sum(x.input[4]), sum(x.input[5])]::bigint[] as input
        from (
          select s.workspace_id, y.subject, s.output_tokens as output, s.credits_micro as charged,
            '{0,0,0,0,0}'::bigint[] as requests, '{0,0,0,0,0}'::bigint[] as input
          from settled s cross join lateral (
            select 'key:' || s.key_id as subject union all select subject from subjects_of(s.end_user, s.tags)) y
          union all
          select g.workspace_id, g.subject, 0, 0, windows_since(g.at, v.at, g.admitted),
            windows_since(g.at, v.at, g.input)
          from share g join period v using (workspace_id)) x
        join period w using (workspace_id)
        where exists (select from subject_periods c where c.workspace_id = any (ws))
        group by 1, 2, 3) u
      cross join lateral (
        select * from subject_periods p where p.workspace_id = u.workspace_id and p.subject = u.subject offset 0) p
      on conflict (workspace_id, subject) do update set at = excluded.at, requests = excluded.requests,
        input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
        spent_micro = excluded.spent_micro
  ), total as materialized (
    select workspace_id, count(*) as n, sum(credits_micro)::bigint as charged, sum(granted)::bigint as granted,
      sum(output_tokens)::bigint as output
    from settled group by 1
  ), charged as (
    update accounts a set granted_micro = a.granted_micro - t.granted,
        purchased_micro = a.purchased_micro - t.charged + t.granted
      from total t where a.workspace_id = any (ws) and a.workspace_id = t.workspace_id and t.charged > 0
  ), said as materialized (
    -- What the items have said about each grant.
    select workspace_id, replica, max(seq) as seq, sum(credits_micro)::bigint as charged,
      sum(output_tokens)::bigint as output, sum(used_requests)::bigint as requests, sum(used_input)::bigint as input,
      (array_agg(held_micro order by seq desc))[1] as held, (array_agg(running_now order by seq desc))[1] as running
    from entry group by 1, 2
  ), granted as (
    update grants g set seq = s.seq, credit_micro = greatest(0, g.credit_micro - s.charged),
        held_micro = least(s.held, greatest(0, g.credit_micro - s.charged)),
        running = greatest(g.running, s.running), running_now = s.running,
        requests = greatest(0, g.requests - s.requests), input_tokens = greatest(0, g.input_tokens - s.input),
        output_tokens = greatest(0, g.output_tokens - s.output)
      from said s where g.workspace_id = any (ws) and g.workspace_id = s.workspace_id and g.replica = s.replica
      returning g.workspace_id, g.at, s.requests, s.input
  ), counted as materialized (
    -- An admitted request counts in the windows in which it was reserved.
    select workspace_id,
      array_agg(coalesce(n.requests, 0) order by x.place) as requests,
      array_agg(coalesce(n.input, 0) order by x.place) as input
    from period p
    cross join unnest(array['minute', 'day', 'week', 'month']) with ordinality as x (unit, place)
    cross join lateral (
      select sum(g.requests)::bigint as requests, sum(g.input)::bigint as input from granted g
      where g.workspace_id = p.workspace_id and g.at >= date_trunc(x.unit, p.at, 'UTC')) n
    group by 1
  ), passed as (
    insert into periods as old (workspace_id, at, requests, input_tokens, output_tokens, spent_micro, clock)
    select p.workspace_id, p.at, add_to_each(p.requests, c.requests), add_to_each(p.input_tokens, c.input),
      add_to_each(p.output_tokens, array_fill(coalesce(t.output, 0), array[4])),
      add_to_each(p.spent_micro, array_fill(coalesce(t.charged - t.granted, 0), array[4])), p.clock
    from period p join counted c using (workspace_id) left join total t using (workspace_id)
    on conflict (workspace_id) do update set at = excluded.at, requests = excluded.requests,
      input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
      spent_micro = excluded.spent_micro, clock = excluded.clock
  )
  select coalesce(sum(n), 0)::bigint into posted from total;
  return posted;
end $$;
