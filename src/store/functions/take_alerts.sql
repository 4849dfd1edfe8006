-- Takes up to `room` due alerts for an attempt, and no other replica takes them for a minute. Workspaces take turns:
-- the one with the fewest attempts under way is first, of several the one whose last attempt is the oldest. A
-- workspace has at most `per_workspace` attempts under way in a replica, a host `per_host`; all mails have one host,
-- that of the mail server. `workspaces` and `hosts` are those of the attempts that the replica has under way, one item
-- for each.
--
-- The rules are locked with the alerts and skipped if they are locked, so that replicas neither wait for each other
-- nor lock the same rules in different orders.
create or replace function take_alerts(
  room bigint, per_workspace bigint, per_host bigint, workspaces text[], hosts text[]
) returns table (workspace_id text, id text, body text, attempts integer, url text, secret text, format text,
  host text)
language sql as $$
  with due as (
    select d.workspace_id, d.id, d.next_at, cardinality(array_positions(workspaces, d.workspace_id))
      + row_number() over (partition by d.workspace_id order by d.next_at, d.id) as place
    from alert_deliveries d where d.state = 'waiting' and d.next_at <= now()
  ), own as (
    select d.*, r.sent_at, lower(case when r.url like 'mailto:%' then 'mailto:'
      else coalesce(substring(r.url from '//(\[[^]]*\]|[^/:?#\\]+)'), r.url) end) as host
    from due d join alert_rules r using (workspace_id) where d.place <= per_workspace and not mail_pauses(r)
  ), shared as (
    select o.*, cardinality(array_positions(hosts, o.host))
      + row_number() over (partition by o.host order by o.place, o.sent_at nulls first, o.next_at) as host_place
    from own o
  ), chosen as (
    select d.workspace_id, d.id, r.url, r.secret, r.format, s.host
    from shared s join alert_deliveries d using (workspace_id, id) join alert_rules r using (workspace_id)
    where s.host_place <= per_host and d.state = 'waiting' and d.next_at <= now()
    order by s.place, s.sent_at nulls first, s.next_at
    limit room for update of d, r skip locked
  ), turns as (
    update alert_rules r set sent_at = clock_timestamp()
    where r.workspace_id in (select c.workspace_id from chosen c)
  )
  update alert_deliveries d set attempts = d.attempts + 1, next_at = clock_timestamp() + interval '1 minute'
  from chosen c where (d.workspace_id, d.id) = (c.workspace_id, c.id)
  returning d.workspace_id, d.id, d.event, d.attempts, c.url, c.secret, c.format, c.host;
$$;
