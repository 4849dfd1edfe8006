-- Adds counters of minute, day, week and month.
create or replace function add_to_each(a bigint[], b bigint[]) returns bigint[] language sql immutable as $$
  select array[a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4]]
$$;
