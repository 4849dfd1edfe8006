-- Whether a rule's mails wait because 60 of them were sent within the last hour. So no owner floods the mailbox of
-- somebody else. The next_at of a mail that was sent is shortly after that.
create or replace function mail_pauses(rule alert_rules) returns boolean language sql stable as $$
  select rule.url like 'mailto:%' and 60 <= (
    select count(*) from alert_deliveries d
    where d.workspace_id = rule.workspace_id and d.state = 'delivered' and d.next_at > now() - interval '1 hour')
$$;
