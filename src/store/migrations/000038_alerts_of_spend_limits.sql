-- Each spend limit of a workspace has an alert of its own. Which limit an earlier alert was about is not known, so all
-- are compared as if for the first time.
delete from alert_states where kind = 'spend_share';
alter table alert_states
  drop constraint alert_states_kind_check,
  add check (kind in ('credit_left', 'spend_share:day', 'spend_share:week', 'spend_share:month', 'failure_share'));
