-- Alerts on the share of a cap that is used; raised by functions/raise_cap_alerts.sql.
alter table alert_rules
  add column cap_share double precision,        -- null: no threshold
  add column cap_limits text[];                 -- limits as refusals name them, user:credits_per_day; null: all

-- Alerts that were raised: one for each period of a cap, and again when its amount changes. Dropped when the period has
-- ended.
create table cap_alerts (
  workspace_id text not null,                   -- of the rule
  subject_id text not null,                     -- the workspace that has the cap
  subject text collate "C" not null,            -- whose use it is: key:ID, user:ID, tag:NAME=VALUE
  figure text not null,
  period text not null,
  action text not null,
  amount bigint not null,
  start timestamptz not null,                   -- of the period; -infinity for all time
  ends_at timestamptz not null,                 -- infinity for all time
  primary key (workspace_id, subject_id, subject, figure, period, action, amount, start)
);
create index cap_alerts_end on cap_alerts (ends_at);

-- Subjects of caps, or templates, that are to be compared although they may not be in use: a cap was set or cleared, or
-- there was no room for an alert. Emptied by each comparison.
create table cap_changes (
  id bigint generated always as identity primary key,
  workspace_id text not null,
  subject text collate "C" not null
);
create index caps_end on caps (ends_at) where ends_at is not null;

-- Finds the counters that have changed lately, however many there are. A summarizing index leaves updates heap-only, in
-- Postgres 16 and newer.
create index subject_periods_changed on subject_periods using brin (at) with (pages_per_range = 4, autosummarize = on);
