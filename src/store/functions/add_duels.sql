-- Adds what an outcome says of pairs of models, and takes back what an earlier one of the same answer has added.
create or replace function add_duels(of_ability text, drafts json, given double precision, verdicts boolean[],
  earlier double precision, earlier_verdicts boolean[])
returns void language sql as $$
  insert into model_duels as old (one, one_fingerprint, other, other_fingerprint, ability, wins, losses)
  select x.one, x.one_fingerprint, x.other, x.other_fingerprint, of_ability, sum(x.wins), sum(x.losses)
  from (
    select * from outcome_duels(drafts, given, verdicts)
    union all
    select d.one, d.one_fingerprint, d.other, d.other_fingerprint, -d.wins, -d.losses
    from outcome_duels(drafts, earlier, earlier_verdicts) d where earlier is not null) x
  -- In one order, so that two outcomes do not wait for each other.
  group by 1, 2, 3, 4 having sum(x.wins) <> 0 or sum(x.losses) <> 0
  order by x.one collate "C", 2, x.other collate "C", 4
  on conflict (one, one_fingerprint, other, other_fingerprint, ability)
    do update set wins = old.wins + excluded.wins, losses = old.losses + excluded.losses
$$;
