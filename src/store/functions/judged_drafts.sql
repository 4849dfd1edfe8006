-- The drafts of an answer that an outcome judges, with their points: those whose draft is the answer get its score.
-- Another draft is right or wrong by its verdict; without one it is wrong where the answer is right.
-- by_model, of_entry: who answered where there are no drafts. drafts: as in `outcomes`.
create or replace function judged_drafts(by_model text, of_entry text, drafts json, given double precision,
  verdicts boolean[])
returns table (place bigint, model text, fingerprint text, disagreed boolean, points numeric)
language sql immutable as $$
  with draft as (
    select n, d ->> 0 as model, d ->> 1 as fingerprint, (d ->> 2)::int as answer
    from json_array_elements(coalesce(drafts -> 'd', json_build_array(json_build_array(by_model, of_entry, 0))))
      with ordinality as x (d, n)
  ), judged as (
    select d.*, (select count(distinct answer) > 1 from draft) as disagreed,
      case when answer = coalesce((drafts ->> 'a')::int, 0) then given::numeric
        else coalesce(verdicts[answer + 1]::int, case when given = 1 then 0 end) end as points
    from draft d where answer is not null
  )
  select n, j.model, j.fingerprint, j.disagreed, j.points
  from judged j where j.points is not null and j.fingerprint is not null
$$;
