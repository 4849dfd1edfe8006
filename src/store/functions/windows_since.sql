-- A count for each of minute, day, week, month and all time: 0 for those that have begun after `at`.
create or replace function windows_since(at timestamptz, now timestamptz, n bigint) returns bigint[]
language sql stable as $$
  select array[
    case when at >= date_trunc('minute', now, 'UTC') then n else 0 end,
    case when at >= date_trunc('day', now, 'UTC') then n else 0 end,
    case when at >= date_trunc('week', now, 'UTC') then n else 0 end,
    case when at >= date_trunc('month', now, 'UTC') then n else 0 end, n]
$$;
