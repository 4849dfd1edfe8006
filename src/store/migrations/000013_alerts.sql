-- Alerts that owners set for their workspace, and operators for all workspaces (workspace_id ''). Written by
-- src/admin/alerts.ts; raised by functions/raise_alerts.sql; sent by src/alerts/.
create table alert_rules (
  workspace_id text primary key,
  url text not null,
  secret text not null,                         -- of the signatures; the receiver has the same
  credit_below_micro bigint,                    -- null: no threshold, as for the other two
  spend_share double precision,
  failure_share double precision
);

-- Thresholds that are or were crossed.
create table alert_states (
  workspace_id text not null,                   -- of the rule
  subject_id text not null,                     -- the workspace that has crossed it
  kind text not null check (kind in ('credit_left', 'spend_share', 'failure_share')),
  raised_at timestamptz not null,
  cleared_at timestamptz,                       -- null: it is still crossed
  primary key (workspace_id, subject_id, kind)
);

create table alert_deliveries (
  workspace_id text not null,                   -- of the rule
  id text not null,                             -- evt_…
  created_at timestamptz not null default clock_timestamp(),
  event text not null,                          -- the body, as it is signed
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  attempts integer not null default 0,
  next_at timestamptz not null default clock_timestamp(),
  response_status integer,
  error text,
  primary key (workspace_id, id)
);
create index alert_deliveries_due on alert_deliveries (next_at) where state = 'waiting';
create index alert_deliveries_page on alert_deliveries (workspace_id, created_at, id);

-- One row: when thresholds were compared last, by whichever replica came first.
create table alert_clock (compared_at timestamptz not null);
insert into alert_clock values (clock_timestamp());
