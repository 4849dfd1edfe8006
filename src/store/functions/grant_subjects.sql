-- Reserves headroom of subjects for a replica, so that it admits their requests by itself.
-- p: the counters of the workspace. of_grant: the grant of the replica. live: number of replicas that run.
-- wants: [{"subject", "n", "size_credit", "size_input", "size_output", "minute"?}]: headroom for n requests of a size,
-- beside what the replica has of a minute; without a minute it has returned that. Each subject comes once.
-- Returns [{"subject", "extra": {"credit", "running", "requests", "input", "output"}, "ms_left"}], where null stands
-- for no cap. It ends with the minute and with a raise of a cap. At the edge nothing is reserved.
create or replace function grant_subjects(p periods, of_grant bigint, live int, wants jsonb) returns jsonb
language plpgsql as $$
declare
  now_minute constant timestamptz := date_trunc('minute', p.at, 'UTC');
  ms_left constant numeric := ms_left_in_period('minute', p.at, p.clock);
  result jsonb;
begin
  with want as materialized (
    select x.*, g.at is not null as has_row from jsonb_to_recordset(wants) as x (subject text, n bigint,
      size_credit bigint, size_input bigint, size_output bigint, minute bigint)
    -- By the primary key whatever the statistics say; see report_subjects().
    left join lateral (
      select at from subject_grants g
      where g.workspace_id = p.workspace_id and g.subject = x.subject and g.grant_id = of_grant offset 0) g on true
    where x.n is not null
      and (x.minute is null or x.minute = extract(epoch from now_minute) * 1000 and g.at >= now_minute)
  ), room as (
    -- A cap that is exceeded already leaves nothing, also for requests that need nothing of it.
    select w.subject, w.n as most,
      least(w.n, min((u.amount - u.used - u.held - u.reserved) / (2 * live * greatest(1, case u.figure
        when 'credits' then w.size_credit when 'input_tokens' then w.size_input
        when 'output_tokens' then w.size_output else 1 end)))) as n,
      count(u.figure) > 0 as has_caps, w.has_row, w.size_credit, w.size_input, w.size_output,
      bool_or(u.figure = 'credits') as credit, bool_or(u.figure = 'concurrent_requests') as running,
      bool_or(u.figure = 'requests') as requests, bool_or(u.figure = 'input_tokens') as input,
      bool_or(u.figure = 'output_tokens') as output
    from want w left join lateral cap_use(p.workspace_id, w.subject, p.at) u on true
    group by w.subject, w.n, w.has_row, w.size_credit, w.size_input, w.size_output
  ), part as materialized (
    select subject, has_caps, has_row, case when credit then n * size_credit end as credit,
      case when running then n end as running, case when requests then n end as requests,
      case when input then n * size_input end as input, case when output then n * size_output end as output
    from room where n >= least(4, most)
  ), counted as (
    insert into subject_periods
      select s.* from part x cross join lateral subject_periods_at(p.workspace_id, x.subject, p.at) s where x.has_caps
      on conflict do nothing
  ), reserved as (
    -- What is admitted without a cap counts in the windows of now, if a cap is set later.
    insert into subject_grants as g
      select p.workspace_id, subject, of_grant, p.at, coalesce(credit, 0), 0, coalesce(running, 0), 0,
        coalesce(requests, 0), coalesce(input, 0), coalesce(output, 0), has_caps
      from part where has_caps or has_row
      on conflict (workspace_id, subject, grant_id) do update set at = excluded.at,
        credit_micro = g.credit_micro + excluded.credit_micro, running = g.running + excluded.running,
        requests = g.requests + excluded.requests, input_tokens = g.input_tokens + excluded.input_tokens,
        output_tokens = g.output_tokens + excluded.output_tokens, has_idle = g.has_idle or excluded.has_idle
  )
  select coalesce(jsonb_agg(jsonb_build_object('subject', x.subject, 'extra', jsonb_build_object('credit', x.credit,
      'running', x.running, 'requests', x.requests, 'input', x.input, 'output', x.output),
    'ms_left', least(ms_left, (
      select round(1000 * extract(epoch from min(c.ends_at) - p.at), 3) from caps c
      where c.workspace_id = p.workspace_id and c.subject in (x.subject, template_of(x.subject))
        and c.ends_at > p.at)))), '[]') into result from part x;
  return result;
end $$;
