-- Milliseconds until the period that contains `at` ends, in UTC; weeks begin on Monday.
-- unit: minute, day, week or month. clock: see ms_left_until.
create or replace function ms_left_in_period(unit text, at timestamptz, clock timestamptz) returns numeric
language sql immutable as $$
  select ms_left_until(e.nd, at, clock)
  from (select (date_trunc(unit, at at time zone 'UTC') + ('1 ' || unit)::interval) at time zone 'UTC') as e (nd)
$$;
