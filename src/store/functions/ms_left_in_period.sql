-- Milliseconds until the period that contains `at` ends, in UTC; weeks begin on Monday.
-- unit: minute, day, week or month.
-- clock: the reading of the clock. While it is before `at`, `at` advances at half its speed (see periods_at), so the
-- period ends after twice the rest, if the clock is still before `at` then; else when the clock reaches the end.
create or replace function ms_left_in_period(unit text, at timestamptz, clock timestamptz) returns numeric
language sql immutable as $$
  select round(1000 * extract(epoch from
    case when 2 * (e.nd - at) < at - clock then 2 * (e.nd - at) else e.nd - clock end), 3)
  from (select (date_trunc(unit, at at time zone 'UTC') + ('1 ' || unit)::interval) at time zone 'UTC') as e (nd)
$$;
