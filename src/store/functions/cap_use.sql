-- The caps of a subject with what is used of them. held: what running requests hold of credits, or their number, in
-- addition to used. reserved: headroom of replicas (subject_grants), also for their running requests; of it, taken:
-- what these held at the last report. has_idle: whether replicas may return some of it.
create or replace function cap_use(w text, of_subject text, at timestamptz)
returns table (figure text, period text, amount bigint, action text, used bigint, held bigint, reserved bigint,
  taken bigint, has_idle boolean)
language sql stable as $$
  select c.figure, c.period, c.amount, c.action,
    case c.figure when 'credits' then s.spent_micro[n.place] when 'requests' then s.requests[n.place]
      when 'input_tokens' then s.input_tokens[n.place] when 'output_tokens' then s.output_tokens[n.place] else 0 end,
    case c.figure when 'credits' then h.micro when 'concurrent_requests' then h.running else 0 end,
    r.size, r.taken, r.has_idle
  from caps_of(w, of_subject, at) c
  cross join subject_periods_at(w, of_subject, at) s
  cross join lateral (
    select array_position(array['minute', 'day', 'week', 'month', 'total'], c.period) as place) n
  cross join (
    select coalesce(sum(h.hold_micro), 0)::bigint as micro, count(*) as running
    from subject_holds h
    where h.workspace_id = w and h.subject = of_subject and (h.grant_id = 0 or exists (
      select from grants g where g.workspace_id = w and g.id = h.grant_id))) h
  cross join lateral (
    select coalesce(sum(case c.figure when 'credits' then g.credit_micro when 'concurrent_requests' then g.running
        else case when c.period = 'total' or g.at >= date_trunc(c.period, cap_use.at, 'UTC') then
          case c.figure when 'requests' then g.requests when 'input_tokens' then g.input_tokens
            else g.output_tokens end end end), 0)::bigint as size,
      coalesce(sum(case c.figure when 'credits' then g.held_micro when 'concurrent_requests' then g.running_now
        else 0 end), 0)::bigint as taken,
      coalesce(bool_or(g.has_idle), false) as has_idle
    from subject_grants g where g.workspace_id = w and g.subject = of_subject) r
$$;
