-- The counters of a subject at the time of its workspace's windows (see periods_at()): those of periods that have ended
-- are 0. Without a row, they are what the tables of usage have, which count input tokens of answers only. Writes
-- nothing.
create or replace function subject_periods_at(w text, of_subject text, now timestamptz) returns subject_periods
language plpgsql stable as $$
declare
  s subject_periods%rowtype;
  nothing constant bigint[] := '{0,0,0,0,0}';
  units constant text[] := array['minute', 'day', 'week', 'month'];
begin
  select * into s from subject_periods p where p.workspace_id = w and p.subject = of_subject;
  if found then
    s.requests := add_to_periods(s.requests, s.at, now, nothing);
    s.input_tokens := add_to_periods(s.input_tokens, s.at, now, nothing);
    s.output_tokens := add_to_periods(s.output_tokens, s.at, now, nothing);
    s.spent_micro := add_to_periods(s.spent_micro, s.at, now, nothing);
    s.at := now;
    return s;
  end if;
  with used as (
    select unit, start, requests + failed_requests as requests, input_tokens, output_tokens, credits_micro
    from usage where key_id = substr(of_subject, 5) and workspace_id = w and unit in ('minute', 'day')
      and starts_with(of_subject, 'key:') and (unit = 'day' or start >= date_trunc('minute', now, 'UTC'))
    union all
    select unit, start, requests + failed_requests, input_tokens, output_tokens, credits_micro
    from usage_subjects where workspace_id = w and subject = of_subject and unit in ('minute', 'day')
      and (unit = 'day' or start >= date_trunc('minute', now, 'UTC'))
  ), period as (
    select x.place, coalesce(sum(requests), 0)::bigint as requests, coalesce(sum(input_tokens), 0)::bigint as input,
      coalesce(sum(output_tokens), 0)::bigint as output, coalesce(sum(credits_micro), 0)::bigint as spent
    from unnest(units || array['total']) with ordinality as x (period, place)
    left join used on case x.period when 'minute' then unit = 'minute' when 'total' then unit = 'day'
      else unit = 'day' and start >= date_trunc(x.period, now, 'UTC') end
    group by 1
  )
  select w, of_subject, now, array_agg(requests order by place), array_agg(input order by place),
      array_agg(output order by place), array_agg(spent order by place)
    into s from period;
  return s;
end $$;
