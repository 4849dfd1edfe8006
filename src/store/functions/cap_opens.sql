-- The time at which a cap of a subject ends and then leaves room for what is needed: what was used, and one more
-- request. Null: no cap of the figure and period ends, or what holds after it has no room either.
create or replace function cap_opens(w text, of_subject text, at timestamptz, of_figure text, of_period text,
  needed bigint) returns timestamptz language sql stable as $$
  select e.ends_at
  from (
    select min(c.ends_at) as ends_at from caps c
    where c.workspace_id = w and c.subject in (of_subject, template_of(of_subject)) and c.ends_at > cap_opens.at
      and (c.figure, c.period, c.action) = (of_figure, of_period, 'refuse')) e
  where not exists (
    select from caps_of(w, of_subject, e.ends_at) l
    where (l.figure, l.period, l.action) = (of_figure, of_period, 'refuse') and l.amount < needed)
$$;
