-- What an outcome adds to the sums of each model. The parameters are those of `judged_drafts`.
create or replace function outcome_effects(by_model text, of_entry text, drafts json, given double precision,
  verdicts boolean[])
returns table (model text, fingerprint text, n bigint, score numeric, wins bigint, losses bigint)
language sql immutable as $$
  select j.model, j.fingerprint, count(*), sum(points),
    count(*) filter (where disagreed and points = 1), count(*) filter (where disagreed and points = 0)
  from judged_drafts(by_model, of_entry, drafts, given, verdicts) j group by 1, 2
$$;
