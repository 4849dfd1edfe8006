-- The first time at which a cap of a subject ends and what holds then has room for what is needed: what was used, and
-- one more request. Null: there is no such time.
create or replace function cap_opens(w text, of_subject text, at timestamptz, of_figure text, of_period text,
  needed bigint) returns timestamptz language sql stable as $$
  select min(c.ends_at) from caps c
  where c.workspace_id = w and c.subject in (of_subject, template_of(of_subject)) and c.ends_at > cap_opens.at
    and (c.figure, c.period, c.action) = (of_figure, of_period, 'refuse')
    and not exists (
      select from caps_of(w, of_subject, c.ends_at) l
      where (l.figure, l.period, l.action) = (of_figure, of_period, 'refuse') and l.amount < needed)
$$;
