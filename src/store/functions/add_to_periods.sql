-- Counters of minute, day, week, month and all time, with what is added to each. Those of periods that have ended since
-- `at`, when they were counted, begin with 0. It is stable, as date_trunc() is, because Postgres would not inline it
-- otherwise: a call takes 20 times as long.
create or replace function add_to_periods(counts bigint[], at timestamptz, now timestamptz, added bigint[])
returns bigint[] language sql stable as $$
  select array[
    case when at >= date_trunc('minute', now, 'UTC') then counts[1] else 0 end + added[1],
    case when at >= date_trunc('day', now, 'UTC') then counts[2] else 0 end + added[2],
    case when at >= date_trunc('week', now, 'UTC') then counts[3] else 0 end + added[3],
    case when at >= date_trunc('month', now, 'UTC') then counts[4] else 0 end + added[4], counts[5] + added[5]]
$$;
