-- The list of what must hold between ledger, accounts, grants, periods, generations and usage at any moment, whatever
-- runs. Returns one row for each violation and no row when everything holds; expected and found are credits or counts.
-- Reads whole tables. w: null checks all workspaces. All of it is one query, so that it reads one snapshot. Generations
-- and minutes of usage are dropped after the retention period, by month; the checks against them begin with the oldest
-- month that is left.
create or replace function check_books(w text default null)
returns table (check_name text, workspace_id text, subject text, expected text, found text) language sql stable as $$
with account as (
  select * from accounts a where w is null or a.workspace_id = w
), entry as materialized (
  select * from ledger l where w is null or l.workspace_id = w
), booked as (
  select e.workspace_id, sum(granted_micro) as granted, sum(purchased_micro) as purchased,
    sum(purchased_micro) filter (where kind = 'purchase') as purchased_total,
    -sum(granted_micro + purchased_micro) filter (where kind = 'settlement') as charged
  from entry e group by 1
), request as (
  select e.workspace_id, e.reference as request_id, min(at) as first_at, count(*) as settlements,
    -sum(granted_micro + purchased_micro) as charged
  from entry e where kind = 'settlement' group by 1, 2
), reserved as (
  -- What replicas have reserved, in the windows that contain the current time.
  select workspace_id, sum(credit_micro) as credit, sum(running) as running,
    array_agg(jsonb_build_object('at', at, 'requests', requests, 'input_tokens', input_tokens)) as rates
  from grants g where w is null or g.workspace_id = w group by 1
), generation as (
  select *, is_answered(outcome, streamed) as answered from generations g where w is null or g.workspace_id = w
), used as (
  select unit, start, workspace_id, key_id, true as by_key, requests, failed_requests,
    input_tokens, output_tokens, cached_tokens, credits_micro
  from usage u where w is null or u.workspace_id = w
  union all
  select unit, start, workspace_id, subject, false, requests, failed_requests,
    input_tokens, output_tokens, cached_tokens, credits_micro
  from usage_subjects u where w is null or u.workspace_id = w
), kept as (
  select (select date_trunc('month', min(created_at), 'UTC') from generations) as generations,
    (select date_trunc('month', min(start), 'UTC') from usage where unit = 'minute') as minutes
), rollup as (
  -- Sums of usage as they must be, from the next finer unit.
  select 'minute' as unit, date_trunc('minute', created_at, 'UTC') as start, g.workspace_id, s.key_id, s.by_key,
    count(*) filter (where answered) as requests, count(*) filter (where not answered) as failed,
    coalesce(sum(input_tokens) filter (where answered), 0) as input,
    coalesce(sum(output_tokens) filter (where answered), 0) as output,
    coalesce(sum(cached_tokens) filter (where answered), 0) as cached, sum(credits_micro) as micro
  from generation g cross join kept cross join lateral (
    select g.key_id, true as by_key union all select subject, false from subjects_of(g.end_user, g.tags)) s
  where created_at >= kept.generations and created_at >= kept.minutes group by 1, 2, 3, 4, 5
  union all
  select f.unit, date_trunc(f.unit, u.start, 'UTC'), u.workspace_id, key_id, by_key, sum(requests),
    sum(failed_requests), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(credits_micro)
  from used u join (values ('minute', 'hour'), ('hour', 'day')) as f (finer, unit) on f.finer = u.unit
  group by 1, 2, 3, 4, 5
), amounts as (
  -- The figures that admission reads follow from the ledger.
  select 'granted = ledger' as check_name, a.workspace_id, '' as subject, coalesce(b.granted, 0) as expected,
    a.granted_micro::numeric as found
  from account a left join booked b using (workspace_id)
  union all
  select 'purchased = ledger', a.workspace_id, '', coalesce(b.purchased, 0), a.purchased_micro
  from account a left join booked b using (workspace_id)
  union all
  select 'total purchased = ledger', a.workspace_id, '', coalesce(b.purchased_total, 0), a.purchased_total_micro
  from account a left join booked b using (workspace_id)
  union all
  -- Each booking is in the ledger once, and the other way round.
  select 'booking = ledger', coalesce(b.workspace_id, e.workspace_id), coalesce(b.reference, e.reference),
    coalesce(b.amount_micro, 0), coalesce(e.amount, 0)
  from (select * from bookings where w is null or workspace_id = w) b
  full join (
    select e.workspace_id, e.reference, sum(granted_micro + purchased_micro) as amount
    from entry e where kind in ('grant', 'purchase', 'adjustment') group by 1, 2) e using (workspace_id, reference)
  union all
  -- Each settled request has a generation with the charge of the ledger.
  select 'charge = generation', coalesce(g.workspace_id, r.workspace_id), coalesce(g.request_id, r.request_id),
    coalesce(g.charged, 0), coalesce(r.charged, 0)
  from (select workspace_id, request_id, sum(credits_micro) as charged from generation group by 1, 2) g
  full join request r using (workspace_id, request_id) cross join kept
  -- The times of a generation and of its ledger rows differ, so a day at the start is left out.
  where g.request_id is not null or r.first_at > kept.generations + interval '1 day'
  union all
  -- Only answers that were delivered are charged (isCharged in src/admission/price.ts).
  select 'uncharged outcome', workspace_id, request_id, 0, credits_micro
  from generation where not (outcome = 'ok' or (outcome = 'caller_gone' and streamed))
  union all
  -- No settlement adds credit.
  select 'settlement takes credit', e.workspace_id, e.reference, 0, greatest(granted_micro, purchased_micro)
  from entry e where kind = 'settlement' and greatest(granted_micro, purchased_micro) > 0
  union all
  -- Usage has every charge.
  select 'usage = ledger', a.workspace_id, '', coalesce(b.charged, 0), coalesce(u.charged, 0)
  from account a left join booked b using (workspace_id)
  left join (select workspace_id, sum(credits_micro) as charged from used where unit = 'day' and by_key group by 1) u
    using (workspace_id)
  union all
  -- Subjects with caps have every charge.
  select 'spent by subject = usage', s.workspace_id, s.subject, coalesce(u.charged, 0), s.spent_micro[5]
  from subject_periods s join account a using (workspace_id)
  left join (
    select workspace_id, case when by_key then 'key:' || key_id else key_id end as subject,
      sum(credits_micro) as charged
    from used where unit = 'day' group by 1, 2) u using (workspace_id, subject)
  union all
  -- The current periods have every charge of purchased credit.
  select 'spent in period = ledger', p.workspace_id, x.unit, coalesce(-sum(e.purchased_micro), 0), x.spent
  from periods p join account a using (workspace_id)
  cross join unnest(array['minute', 'day', 'week', 'month'], p.spent_micro) as x (unit, spent)
  left join entry e on e.workspace_id = p.workspace_id and e.kind = 'settlement'
    and e.at >= date_trunc(x.unit, p.at, 'UTC') and date_trunc(x.unit, e.at, 'UTC') = date_trunc(x.unit, p.at, 'UTC')
  group by 2, 3, 5
), counts as (
  -- Each request is charged once and recorded once.
  select 'settled once' as check_name, r.workspace_id, r.request_id as subject, 1 as expected, settlements as found
  from request r where settlements > 1
  union all
  select 'one generation', workspace_id, request_id, 1, count(*) from generation group by 2, 3 having count(*) > 1
  union all
  -- A running service ends the grants of dead replicas within 18 s (src/admission/epochs.ts).
  select 'no orphaned grant', g.workspace_id, g.replica, 0, 1 from grants g
  where (w is null or g.workspace_id = w) and g.at < clock_timestamp() - interval '1 hour'
    and exists (select from replicas r where r.beat_at > clock_timestamp() - interval '1 minute')
    and not exists (
      select from replicas r where r.id = g.replica and r.beat_at > clock_timestamp() - interval '1 hour')
)
select check_name, workspace_id, subject, trim_scale(expected / 1000000)::text, trim_scale(found / 1000000)::text
from amounts where expected <> found
union all
select check_name, workspace_id, subject, expected::text, found::text from counts where expected <> found
union all
select 'balance', workspace_id, '', '>= 0', trim_scale(x.lowest / 1000000.0)::text
from account a, least(granted_micro, purchased_micro) as x (lowest)
where x.lowest < 0
union all
-- What is reserved for replicas can be charged.
select 'reserved credit', a.workspace_id, '', '<= ' || trim_scale((granted_micro + purchased_micro) / 1000000.0),
  trim_scale(r.credit / 1000000)::text
from account a join reserved r using (workspace_id) where r.credit > granted_micro + purchased_micro
union all
-- What requests hold is within the grant of their replica.
select 'hold within grant', g.workspace_id, g.replica, trim_scale(g.credit_micro / 1000000.0)::text,
  trim_scale(g.held_micro / 1000000.0)::text
from grants g where (w is null or g.workspace_id = w) and (g.held_micro > g.credit_micro or g.running_now > g.running)
union all
-- What waits in the log is within the grant of its replica.
select 'log within grant', l.workspace_id, l.replica, '<= ' || coalesce(trim_scale(g.credit_micro / 1000000.0), 0),
  trim_scale(l.waiting / 1000000)::text
from (select workspace_id, replica, sum(credits_micro) as waiting from settlement_log l
      where w is null or l.workspace_id = w group by 1, 2) l
left join grants g using (workspace_id, replica) where g.id is null or l.waiting > g.credit_micro
union all
-- What was admitted and what is reserved is within the limits of requests and tokens, unless an operator changed them
-- in the window.
select 'reserved ' || x.name, a.workspace_id, '', '<= ' || (a.limits ->> x.name), (x.used + x.reserved)::text
from account a join periods p using (workspace_id) join reserved r using (workspace_id)
cross join lateral (
  select n.name || '_per_' || u.unit as name, u.unit,
    case n.name when 'requests' then p.requests[u.place] else p.input_tokens[u.place] end as used,
    (select coalesce(sum((i ->> n.name)::bigint), 0) from unnest(r.rates) i
     where (i ->> 'at')::timestamptz >= date_trunc(u.unit, p.at, 'UTC')) as reserved
  from unnest(array['requests', 'input_tokens']) as n (name)
  cross join (values ('minute', 1), ('day', 2), ('month', 4)) as u (unit, place)) x
where x.reserved > 0 and x.used + x.reserved > (a.limits ->> x.name)::bigint and not exists (
  select from audit c where c.workspace_id = a.workspace_id and c.action in ('limits.set', 'tier.set')
    and c.at >= date_trunc(x.unit, p.at, 'UTC'))
union all
-- What subjects use and hold, and what is reserved for them, is within their caps, unless a cap was changed, or a raise
-- has ended, since the period began, since the oldest grant was opened, or since the admission of a request that was
-- settled in the period. Output tokens count when a request ends, so they can exceed theirs; a cap for all time can be
-- set below what was used.
select 'cap', s.workspace_id, concat_ws(' ', s.subject, u.figure, u.period), '<= ' || u.amount,
  (u.used + u.held + u.reserved)::text
from subject_periods s join account a using (workspace_id) join periods p using (workspace_id)
cross join lateral cap_use(s.workspace_id, s.subject, p.at) u
cross join lateral (
  select date_trunc(u.period, p.at, 'UTC') as start where u.period not in ('', 'total') union all select p.at
  order by 1 limit 1) t
cross join lateral (
  select least(t.start, (select min(opened_at) from grants g where g.workspace_id = s.workspace_id),
    (select min(g.created_at) from entry e
     join generation g on g.workspace_id = e.workspace_id and g.request_id = e.reference
     where e.workspace_id = s.workspace_id and e.kind = 'settlement' and e.at >= t.start)) as since) b
where u.action = 'refuse' and u.used + u.held + u.reserved > u.amount and u.period <> 'total'
  and u.figure <> 'output_tokens'
  and not exists (
    select from audit c where c.workspace_id = s.workspace_id and c.action in ('cap.set', 'cap.clear')
      and c.at >= b.since)
  and not exists (
    select from caps c where c.workspace_id = s.workspace_id and c.subject in (s.subject, template_of(s.subject))
      and (c.figure, c.period, c.action) = (u.figure, u.period, u.action)
      and c.ends_at >= b.since and c.ends_at <= p.at)
union all
-- The purchased credit that is spent, and that running requests can still spend, stays within the limit. A limit that
-- was changed since the period began, since the oldest grant was opened, or since the admission of a request that was
-- settled in the period, does not bind them.
select 'spend limit', a.workspace_id, x.unit,
  '<= ' || trim_scale(x.most / 1000000.0), trim_scale(x.spent / 1000000.0)::text
from account a join periods p using (workspace_id)
cross join lateral (
  select unit, (a.spend_limits ->> unit)::bigint as most,
    spent + greatest(0, coalesce(
      (select credit from reserved r where r.workspace_id = a.workspace_id), 0) - a.granted_micro) as spent
  from unnest(array['minute', 'day', 'week', 'month'], p.spent_micro) as s (unit, spent)) x
where x.spent > x.most and not exists (
  select from audit u
  where u.workspace_id = a.workspace_id and u.action = 'spend_limit.set' and u.details ->> 'period' = x.unit
    and u.at >= least(date_trunc(x.unit, p.at, 'UTC'),
      (select min(opened_at) from grants g where g.workspace_id = a.workspace_id),
      (select min(g.created_at) from entry e
       join generation g on g.workspace_id = e.workspace_id and g.request_id = e.reference
       where e.workspace_id = a.workspace_id and e.kind = 'settlement' and e.at >= date_trunc(x.unit, p.at, 'UTC'))))
union all
select 'usage by ' || unit, workspace_id, format('%s from %s', key_id, start), r.figures, coalesce(u.figures, 'none')
from (select unit, start, workspace_id, key_id, by_key,
        format('%s answered, %s failed, %s+%s tokens, %s cached, %s micro',
          requests, failed, input, output, cached, micro) as figures
      from rollup) r
full join (
  select unit, start, workspace_id, key_id, by_key,
    format('%s answered, %s failed, %s+%s tokens, %s cached, %s micro',
      requests, failed_requests, input_tokens, output_tokens, cached_tokens, credits_micro) as figures
  from used, kept
  where unit = 'day' or unit = 'hour' and start >= kept.minutes
    or unit = 'minute' and start >= kept.generations and start >= kept.minutes) u
  using (unit, start, workspace_id, key_id, by_key)
where r.figures is distinct from u.figures
$$;
