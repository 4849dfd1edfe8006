-- Adds to the sums of pairs which drafts of an answer the referee has found right. An answer is graded once, and not
-- when its caller has recorded an outcome.
-- w: the workspace. began: the time in the identifier. expected: {form: digest} of the answer that is right; empty:
-- none of them is.
create or replace function record_grades(w text, generation text, began timestamptz, expected jsonb)
returns boolean language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  g record;
  o outcomes%rowtype;
  judged boolean[];
begin
  select created_at, ability, outcome into g from generations
    where workspace_id = w and created_at >= began - interval '1 minute' and created_at < began + interval '10 minutes'
      and id = generation
    order by created_at limit 1;
  if g.created_at is null or g.outcome <> 'ok' or g.ability is null then
    return false;
  end if;
  select * into o from outcomes
    where workspace_id = w and created_at = g.created_at and id = generation for update;
  if o.drafts is null or o.score is not null or o.grades is not null then
    return false;
  end if;
  judged := array(
    select digest = coalesce(expected ->> (o.drafts ->> 'f'), '')
    from json_array_elements_text(o.drafts -> 'g') with ordinality as d (digest, place) order by place);
  update outcomes u set grades = judged
    where u.workspace_id = w and u.created_at = g.created_at and u.id = generation;
  perform add_duels(g.ability, o.drafts, judged[(o.drafts ->> 'a')::int + 1]::int, judged, null, null);
  return true;
end $$;
