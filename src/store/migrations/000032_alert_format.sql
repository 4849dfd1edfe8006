-- How the events of a rule are written; see src/alerts/slack.ts.
alter table alert_rules
  add column format text not null default 'event' check (format in ('event', 'slack'));
