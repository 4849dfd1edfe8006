-- The caps of a subject at a time. Of those with the same figure, period and action, one for the subject alone comes
-- before a template, and one that ends comes before one for good. Those of developers are chosen apart from those of
-- owners, and the lower one of both holds, so that a developer can lower what an owner set and never raise it.
create or replace function caps_of(w text, of_subject text, at timestamptz)
returns table (figure text, period text, amount bigint, action text) language sql stable as $$
  select c.figure, c.period, min(c.amount), c.action
  from (
    select distinct on (c.figure, c.period, c.action, c.by_developer) c.figure, c.period, c.amount, c.action
    from caps c
    where c.workspace_id = w and c.subject in (of_subject, template_of(of_subject))
      and (c.ends_at > caps_of.at) is not false
    order by c.figure, c.period, c.action, c.by_developer, c.subject = of_subject desc, c.ends_at is not null desc) c
  group by c.figure, c.period, c.action
  order by c.figure, c.period, c.action
$$;
