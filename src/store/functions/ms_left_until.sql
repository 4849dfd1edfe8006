-- Milliseconds until `at` reaches a time.
-- clock: the reading of the clock. While it is before `at`, `at` advances at half its speed (see periods_at), so the
-- time is reached after twice the rest, if the clock is still before `at` then; else when the clock reaches it.
create or replace function ms_left_until(nd timestamptz, at timestamptz, clock timestamptz) returns numeric
language sql immutable as $$
  select round(1000 * extract(epoch from
    case when 2 * (nd - at) < at - clock then 2 * (nd - at) else nd - clock end), 3)
$$;
