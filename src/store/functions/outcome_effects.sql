-- What an outcome adds to the sums of each model: those whose draft is the answer get its score. Another draft is right
-- or wrong by its verdict; without one it is wrong where the answer is right.
-- by_model, of_entry: who answered where there are no drafts. drafts: as in `outcomes`.
create or replace function outcome_effects(by_model text, of_entry text, drafts json, given double precision,
  verdicts boolean[])
returns table (model text, fingerprint text, n bigint, score numeric, wins bigint, losses bigint)
language sql immutable as $$
  with draft as (
    select d ->> 0 as model, d ->> 1 as fingerprint, (d ->> 2)::int as place
    from json_array_elements(coalesce(drafts -> 'd', json_build_array(json_build_array(by_model, of_entry, 0)))) as d
  ), judged as (
    select d.*, (select count(distinct place) > 1 from draft) as disagreed,
      case when place = coalesce((drafts ->> 'a')::int, 0) then given::numeric
        else coalesce(verdicts[place + 1]::int, case when given = 1 then 0 end) end as points
    from draft d where place is not null
  )
  select j.model, j.fingerprint, count(*), sum(points),
    count(*) filter (where disagreed and points = 1), count(*) filter (where disagreed and points = 0)
  from judged j where points is not null and j.fingerprint is not null group by 1, 2
$$;
