-- What an outcome adds to the sums of each pair of models: the pairs of drafts of which exactly one was right.
create or replace function outcome_duels(drafts json, given double precision, verdicts boolean[])
returns table (one text, one_fingerprint text, other text, other_fingerprint text, wins bigint, losses bigint)
language sql immutable as $$
  with judged as (
    select * from judged_drafts(null, null, drafts, given, verdicts) where points in (0, 1)
  )
  select a.model, a.fingerprint, b.model, b.fingerprint,
    count(*) filter (where a.points = 1), count(*) filter (where b.points = 1)
  from judged a join judged b on a.model collate "C" < b.model collate "C" and a.points <> b.points
  where drafts is not null group by 1, 2, 3, 4
$$;
