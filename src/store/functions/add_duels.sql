-- Adds what an outcome says of pairs of models, and takes back what an earlier one of the same answer has added. No sum
-- gets below 0 when an operator has removed them in between.
create or replace function add_duels(of_ability text, drafts json, given double precision, verdicts boolean[],
  earlier double precision, earlier_verdicts boolean[])
returns void language plpgsql as $$
declare
  d record;
begin
  for d in
    select x.one, x.one_fingerprint, x.other, x.other_fingerprint, sum(x.wins) as wins, sum(x.losses) as losses
    from (
      select * from outcome_duels(drafts, given, verdicts)
      union all
      select e.one, e.one_fingerprint, e.other, e.other_fingerprint, -e.wins, -e.losses
      from outcome_duels(drafts, earlier, earlier_verdicts) e
      where earlier is not null or earlier_verdicts is not null) x
    -- In one order, so that two outcomes do not wait for each other.
    group by 1, 2, 3, 4 having sum(x.wins) <> 0 or sum(x.losses) <> 0
    order by x.one collate "C", 2, x.other collate "C", 4
  loop
    insert into model_duels as old (one, one_fingerprint, other, other_fingerprint, ability, wins, losses)
    values (d.one, d.one_fingerprint, d.other, d.other_fingerprint, of_ability, greatest(d.wins, 0),
      greatest(d.losses, 0))
    on conflict (one, one_fingerprint, other, other_fingerprint, ability)
      do update set wins = greatest(old.wins + d.wins, 0), losses = greatest(old.losses + d.losses, 0);
  end loop;
end $$;
