-- Longest time for which a workspace with a due alert has waited for an attempt, in seconds; 0 if none waits. Further
-- alerts of a workspace wait for those before them, which does not count; nor do mails that pause.
create or replace function alert_wait() returns double precision language sql stable as $$
  select coalesce(extract(epoch from max(now() - greatest(d.since, r.sent_at)))::float8, 0)
  from (
    select workspace_id, min(next_at) as since from alert_deliveries
    where state = 'waiting' and next_at <= now() group by workspace_id
  ) d join alert_rules r using (workspace_id) where not mail_pauses(r);
$$;
