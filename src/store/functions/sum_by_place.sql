-- Sums of the counts of each level. A row from before they were counted has none.
create or replace function sum_by_place(counts bigint[], added bigint[]) returns bigint[] language sql immutable as $$
  select array[coalesce(counts[1], 0) + added[1], coalesce(counts[2], 0) + added[2], coalesce(counts[3], 0) + added[3]]
$$;
