-- Compares what subjects have used of their caps of a day, a week, a month or all time with the shares of alert_rules,
-- and adds an event to alert_deliveries for each share that is reached, once for each period and amount of a cap.
-- since: counters that have not changed after it were compared before. reading: the clock.
-- Returns the number of events.
--
-- Its work grows with the number of subjects that were in use since then, not with that of all subjects. A cap that was
-- set or has come back into force is compared for all its subjects, once (cap_changes). A rule has at most 200 events
-- that wait; further subjects stay in cap_changes until there is room, so none is lost.
create or replace function raise_cap_alerts(since timestamptz, reading timestamptz) returns bigint
language plpgsql as $$
declare
  raised bigint;
begin
  -- Later counters are of later periods.
  delete from cap_alerts where ends_at <= since;
  with rules as materialized (
    select r.workspace_id as rule, r.cap_share, r.cap_limits, 200 - (
      select count(*) from alert_deliveries d where d.workspace_id = r.workspace_id and d.state = 'waiting') as room
    from alert_rules r where r.cap_share is not null
  ), changed as (
    delete from cap_changes where id in (select id from cap_changes order by id limit 1000)
    returning workspace_id, subject
  ), compared as (
    select workspace_id, subject from changed
    union
    select workspace_id, subject from caps where ends_at > since and ends_at <= reading
  ), counters as (
    select s.* from subject_periods s where s.at > since and exists (select from rules)
    union all
    select u.* from compared c
    cross join lateral periods_at(c.workspace_id, reading) p
    cross join lateral used_subjects(c.workspace_id, c.subject, p.at) u
    where exists (select from rules)
  ), reached as materialized (
    select distinct on (r.rule, k.workspace_id, k.subject, c.id) r.rule, r.cap_share, r.room,
      k.workspace_id, k.subject, k.at, c.figure, c.period, c.action, c.amount, u.used, i.start, i.ends_at
    from counters k
    join caps c on c.workspace_id = k.workspace_id and c.subject in (k.subject, template_of(k.subject))
      and c.period in ('day', 'week', 'month', 'total') and (c.ends_at > k.at) is not false
    join rules r on r.rule in ('', k.workspace_id)
    cross join lateral (
      select array_position(array['minute', 'day', 'week', 'month', 'total'], c.period) as place) n
    cross join lateral (
      select case c.figure when 'credits' then k.spent_micro[n.place] when 'requests' then k.requests[n.place]
        when 'input_tokens' then k.input_tokens[n.place] else k.output_tokens[n.place] end as used) u
    cross join lateral (
      select case when c.period = 'total' then '-infinity' else date_trunc(c.period, k.at, 'UTC') end as start,
        case when c.period = 'total' then 'infinity' else (date_trunc(c.period, k.at at time zone 'UTC')
          + ('1 ' || c.period)::interval) at time zone 'UTC' end as ends_at) i
    where u.used > 0 and u.used >= r.cap_share * c.amount
      and (r.cap_limits is null or cap_limit(k.subject, c.figure, c.period) = any (r.cap_limits))
    order by r.rule, k.workspace_id, k.subject, c.id, u.used desc
  ), fresh as materialized (
    select f.*, row_number() over (partition by f.rule order by f.at, f.workspace_id, f.subject) <= f.room as has_room
    from reached f
    where not exists (
        select from cap_alerts a
        where (a.workspace_id, a.subject_id, a.subject, a.figure, a.period, a.action, a.amount, a.start)
          = (f.rule, f.workspace_id, f.subject, f.figure, f.period, f.action, f.amount, f.start))
      -- Another cap can come before this one.
      and (f.figure, f.period, f.amount, f.action) in (select * from caps_of(f.workspace_id, f.subject, f.at))
  ), kept as (
    insert into cap_alerts
    select rule, workspace_id, subject, figure, period, action, amount, start, ends_at from fresh where has_room
    on conflict do nothing
  ), left_over as (
    insert into cap_changes (workspace_id, subject)
    select distinct workspace_id, subject from fresh where not has_room
  )
  insert into alert_deliveries (workspace_id, id, event)
  select f.rule, 'evt_' || replace(gen_random_uuid()::text, '-', ''), jsonb_strip_nulls(jsonb_build_object(
    'type', 'alert.raised',
    'timestamp', to_char(reading at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'data', jsonb_build_object('alert', 'cap_share', 'workspace_id', f.workspace_id, 'workspace', w.name,
      'value', trim_scale(round(coalesce(f.used::numeric / nullif(f.amount, 0), 1), 6)),
      'threshold', trim_scale(round(f.cap_share::numeric, 6)),
      'subject', f.subject, 'limit', cap_limit(f.subject, f.figure, f.period), 'figure', f.figure, 'period', f.period,
      'used', trim_scale(f.used / u.unit), 'amount', trim_scale(f.amount / u.unit), 'action', f.action,
      'resets_at', to_char(nullif(f.ends_at, 'infinity') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))))::text
  from fresh f
  cross join lateral (select case f.figure when 'credits' then 1000000 else 1 end::numeric as unit) u
  left join workspaces w on w.id = f.workspace_id
  where f.has_room;
  get diagnostics raised = row_count;
  return raised;
end $$;
