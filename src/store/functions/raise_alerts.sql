-- Compares the figures of workspaces with the thresholds of alert_rules, and adds an event to alert_deliveries for each
-- that is newly crossed, or not crossed any more. Does nothing if that was done less than `pause` ago; so of several
-- replicas one does it. Returns the number of events.
--
-- Each spend limit is an alert of its own, because that of a month can be reached while that of a day is. An alert that
-- was cleared is raised again after ten minutes at the earliest, so that a figure near its threshold
-- does not raise one each time. One whose threshold has changed while it was raised has raised_at -infinity: it is
-- raised again or cleared. A rule has at most 200 events that wait; what has no room is found again at the next
-- comparison. An alert that waits for room has raised_at infinity, so that its workspace is looked at, and is forgotten
-- if it is not crossed any more. Requests count as failing from 20 in the last ten minutes. The rule of the operators
-- looks at workspaces with requests in the last quarter of an hour, and at those whose alert is raised: the figures of
-- others do not change. A time after the present one is from before the clock was set back, and holds up nothing.
create or replace function raise_alerts(pause interval) returns bigint language plpgsql as $$
declare
  raised bigint;
  last timestamptz;
begin
  select least(compared_at, clock_timestamp()) into last from alert_clock
    where compared_at not between clock_timestamp() - pause and clock_timestamp() for update skip locked;
  if not found then return 0; end if;
  update alert_clock set compared_at = clock_timestamp();

  with subjects as (
    select r.workspace_id as rule, r.credit_below_micro, r.spend_share, r.failure_share,
      a.workspace_id as subject, a.granted_micro + a.purchased_micro as balance, a.spend_limits
    from alert_rules r join accounts a on r.workspace_id in ('', a.workspace_id)
    where r.workspace_id <> ''
      or exists (select from periods p
                 where p.workspace_id = a.workspace_id and p.at > clock_timestamp() - interval '15 minutes')
      or exists (select from alert_states s
                 where s.workspace_id = '' and s.subject_id = a.workspace_id and s.cleared_at is null)
  ), figures as (
    select rule, subject, 'credit_left' as kind, null as period, balance / 1e6::float8 as value,
      credit_below_micro / 1e6::float8 as bound, balance < credit_below_micro as crossed
    from subjects where credit_below_micro is not null
    union all
    select rule, subject, 'spend_share', u.period, coalesce(u.share, 0), spend_share,
      coalesce(u.share >= spend_share, false)
    from subjects cross join lateral (
      select c.unit as period, c.spent_micro / nullif((spend_limits ->> c.unit)::float8, 0) as share
      from current_periods(subject, clock_timestamp()) c where c.unit <> 'minute') u
    where spend_share is not null
    union all
    select rule, subject, 'failure_share', null, coalesce(u.share, 0), failure_share,
      coalesce(u.total >= 20 and u.share >= failure_share, false)
    from subjects left join lateral (
      select sum(requests + failed_requests) as total,
        sum(failed_requests)::float8 / nullif(sum(requests + failed_requests), 0) as share
      from usage
      where workspace_id = subject and unit = 'minute' and start > clock_timestamp() - interval '10 minutes') u on true
    where failure_share is not null
  ), compared as (
    select f.*, k.state, s.raised_at, s.cleared_at from figures f
    cross join lateral (select concat_ws(':', f.kind, f.period) as state) k
    left join alert_states s on (s.workspace_id, s.subject_id, s.kind) = (f.rule, f.subject, k.state)
  ), changes as (
    select c.*, row_number() over (partition by c.rule order by c.subject, c.state) as place from compared c
    where case when c.crossed then c.raised_at is null or c.cleared_at is null and not isfinite(c.raised_at)
            or c.cleared_at not between clock_timestamp() - interval '10 minutes' and clock_timestamp()
          else c.raised_at < 'infinity' and c.cleared_at is null end
  ), rooms as materialized (
    select r.rule, 200 - (
      select count(*) from alert_deliveries d where d.workspace_id = r.rule and d.state = 'waiting') as room
    from (select distinct c.rule from changes c) r
  ), fresh as (
    select c.* from changes c join rooms r using (rule) where c.place <= r.room
  ), left_over as (
    insert into alert_states as s (workspace_id, subject_id, kind, raised_at)
    select c.rule, c.subject, c.state, 'infinity' from changes c join rooms r using (rule)
    where c.place > r.room and c.crossed and (c.raised_at is null or c.cleared_at is not null)
    on conflict (workspace_id, subject_id, kind) do update set raised_at = excluded.raised_at, cleared_at = null
  ), forgotten as (
    delete from alert_states s using compared c
    where (s.workspace_id, s.subject_id, s.kind) = (c.rule, c.subject, c.state)
      and not c.crossed and c.raised_at = 'infinity'
  ), states as (
    insert into alert_states as s (workspace_id, subject_id, kind, raised_at, cleared_at)
    select rule, subject, state, clock_timestamp(), case when not crossed then clock_timestamp() end from fresh
    on conflict (workspace_id, subject_id, kind) do update
      set raised_at = case when excluded.cleared_at is null then excluded.raised_at else s.raised_at end,
          cleared_at = excluded.cleared_at
  )
  insert into alert_deliveries (workspace_id, id, event)
  select rule, 'evt_' || replace(gen_random_uuid()::text, '-', ''), jsonb_strip_nulls(jsonb_build_object(
    'type', case when crossed then 'alert.raised' else 'alert.cleared' end,
    'timestamp', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'data', jsonb_build_object('alert', c.kind, 'period', c.period, 'workspace_id', subject,
      'workspace', w.name, 'value', trim_scale(round(value::numeric, 6)),
      'threshold', trim_scale(round(bound::numeric, 6)))))::text
  from fresh c left join workspaces w on w.id = c.subject;
  get diagnostics raised = row_count;
  -- A transaction that began before the last comparison can have ended after it.
  return raised + raise_cap_alerts(last - interval '1 minute', clock_timestamp());
end $$;
