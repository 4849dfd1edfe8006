-- The counters of the subjects that the subject of a cap stands for, from the tables of usage: of one, or with a
-- template of all that have ever been used. Minutes are left 0. now: the time of the workspace's windows.
create or replace function used_subjects(w text, pattern text, now timestamptz) returns setof subject_periods
language sql stable as $$
  with bounds as (
    -- A subject has no control characters, so nothing lies between a subject and itself with one.
    select case when pattern = template_of(pattern) then left(pattern, -1) else pattern end as first,
      case when pattern = template_of(pattern) then left(pattern, -2) || chr(ascii(right(left(pattern, -1), 1)) + 1)
        else pattern || chr(1) end as beyond
  ), used as (
    select s.subject, s.start, s.requests + s.failed_requests as n, s.input_tokens, s.output_tokens, s.credits_micro
    from usage_subjects s, bounds
    where s.workspace_id = w and s.unit = 'day' and s.subject >= first and s.subject < beyond
    union all
    select 'key:' || u.key_id, u.start, u.requests + u.failed_requests, u.input_tokens, u.output_tokens, u.credits_micro
    from usage u
    where u.workspace_id = w and u.unit = 'day' and pattern in ('key:*', 'key:' || u.key_id)
  )
  select w, u.subject, now,
    array[0, sum(n * day), sum(n * week), sum(n * month), sum(n)]::bigint[],
    array[0, sum(input_tokens * day), sum(input_tokens * week), sum(input_tokens * month), sum(input_tokens)]::bigint[],
    array[0, sum(output_tokens * day), sum(output_tokens * week), sum(output_tokens * month),
      sum(output_tokens)]::bigint[],
    array[0, sum(credits_micro * day), sum(credits_micro * week), sum(credits_micro * month),
      sum(credits_micro)]::bigint[]
  from used u
  cross join lateral (
    select (start >= date_trunc('day', now, 'UTC'))::integer as day,
      (start >= date_trunc('week', now, 'UTC'))::integer as week,
      (start >= date_trunc('month', now, 'UTC'))::integer as month) i
  group by u.subject
$$;
