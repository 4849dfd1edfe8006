-- Records how good an answer of the last seven days was. The last outcome of an answer counts: the sums of the models
-- and of their pairs lose what an earlier one has added. The same outcome again changes nothing.
-- w: the workspace. began: the time in the identifier; the generation was admitted soon after it. given: 0 to 1; null:
-- 1 if the answer is the expected one, else 0. expected: {form: digest} of the expected answer; null: none.
-- at: the current time; tests set it.
-- Returns state `recorded`, `unknown` without such an answer, or `incomparable` if the answer cannot be compared with
-- the expected one, which only matters without `given`.
create or replace function record_outcome(w text, generation text, began timestamptz, given double precision,
  expected jsonb, at timestamptz default null, out state text, out score double precision, out recorded_at timestamptz)
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  g record;
  o outcomes%rowtype;
  found_drafts json;
  wanted text;
  judged boolean[];
begin
  at := coalesce(at, clock_timestamp());
  select created_at, model, fingerprint, ability, outcome, streamed into g from generations
    where workspace_id = w and created_at >= began - interval '1 minute' and created_at < began + interval '10 minutes'
      and id = generation
    order by created_at limit 1;
  if g.created_at is null or not is_answered(g.outcome, g.streamed) or g.created_at <= at - interval '168 hours' then
    state := 'unknown';
    return;
  end if;
  select drafts into found_drafts from outcomes
    where workspace_id = w and created_at = g.created_at and id = generation;
  wanted := expected ->> (found_drafts ->> 'f');
  if wanted is not null then
    -- The first character is the kind of the answer: an option and a value cannot be compared.
    judged := array(
      select case when left(digest, 1) = left(wanted, 1) then digest = wanted end
      from json_array_elements_text(found_drafts -> 'g') with ordinality as d (digest, place) order by place);
  end if;
  score := coalesce(given, judged[(found_drafts ->> 'a')::int + 1]::int);
  if score is null then
    state := 'incomparable';
    return;
  end if;
  state := 'recorded';
  insert into outcomes (workspace_id, created_at, id) values (w, g.created_at, generation) on conflict do nothing;
  select * into o from outcomes
    where workspace_id = w and created_at = g.created_at and id = generation for update;
  recorded_at := o.recorded_at;
  if o.score = record_outcome.score and o.verdicts is not distinct from judged then
    return;
  end if;
  recorded_at := at;
  update outcomes u set score = record_outcome.score, verdicts = judged, recorded_at = at, grades = null
    where u.workspace_id = w and u.created_at = g.created_at and u.id = generation;
  -- An answer that was cut short says little about its model.
  if g.outcome = 'ok' and g.ability is not null then
    insert into model_outcomes as old (model, fingerprint, ability, n, score, wins, losses)
    select x.model, x.fingerprint, g.ability, sum(x.n), sum(x.score), sum(x.wins), sum(x.losses)
    from (
      select * from outcome_effects(g.model, g.fingerprint, o.drafts, record_outcome.score, judged)
      union all
      select e.model, e.fingerprint, -e.n, -e.score, -e.wins, -e.losses
      from outcome_effects(g.model, g.fingerprint, o.drafts, o.score, o.verdicts) e where o.score is not null) x
    -- In one order, so that two outcomes do not wait for each other.
    group by 1, 2 order by 1, 2
    on conflict (model, fingerprint, ability) do update set n = old.n + excluded.n, score = old.score + excluded.score,
      wins = old.wins + excluded.wins, losses = old.losses + excluded.losses;
    -- The word of the caller replaces that of the referee.
    perform add_duels(g.ability, o.drafts, record_outcome.score, judged,
      coalesce(o.score, o.grades[(o.drafts ->> 'a')::int + 1]::int), coalesce(o.verdicts, o.grades));
  end if;
end $$;
