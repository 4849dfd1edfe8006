-- The caps of a subject with what is used of them. held: what running requests hold of credits, or their number, in
-- addition to used.
create or replace function cap_use(w text, of_subject text, at timestamptz)
returns table (figure text, period text, amount bigint, action text, used bigint, held bigint)
language sql stable as $$
  select c.figure, c.period, c.amount, c.action,
    case c.figure when 'credits' then s.spent_micro[n.place] when 'requests' then s.requests[n.place]
      when 'input_tokens' then s.input_tokens[n.place] when 'output_tokens' then s.output_tokens[n.place] else 0 end,
    case c.figure when 'credits' then h.micro when 'concurrent_requests' then h.running else 0 end
  from caps_of(w, of_subject, at) c
  cross join subject_periods_at(w, of_subject, at) s
  cross join lateral (
    select array_position(array['minute', 'day', 'week', 'month', 'total'], c.period) as place) n
  cross join (
    select coalesce(sum(h.hold_micro), 0)::bigint as micro, count(*) as running
    from subject_holds h
    where h.workspace_id = w and h.subject = of_subject and (h.grant_id = 0 or exists (
      select from grants g where g.workspace_id = w and g.id = h.grant_id))) h
$$;
