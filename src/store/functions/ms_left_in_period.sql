-- Milliseconds from `at` until the period that contains it ends, in UTC; weeks begin on Monday. unit: minute, day, week
-- or month.
create or replace function ms_left_in_period(unit text, at timestamptz) returns numeric language sql immutable as $$
  select round(1000 *
    extract(epoch from (date_trunc(unit, at at time zone 'UTC') + ('1 ' || unit)::interval) at time zone 'UTC' - at), 3)
$$;
