-- Limits on subjects of a workspace: a key, an end user, a value of a tag (docs/budgets.md). Few rows, which are read
-- for each request of a subject that may have one.
create table caps (
  workspace_id text not null,
  id text not null,                             -- cap_…
  subject text collate "C" not null,            -- key:ID, user:ID, tag:NAME=VALUE; with * a template for each of them
  figure text not null
    check (figure in ('credits', 'requests', 'input_tokens', 'output_tokens', 'concurrent_requests')),
  period text not null check (period in ('minute', 'day', 'week', 'month', 'total', '')),
  amount bigint not null check (amount >= 0),   -- credits in millionths
  action text not null check (action in ('refuse', 'low')),
  ends_at timestamptz,                          -- until then it replaces the cap without an end; null: for good
  created_at timestamptz not null,
  primary key (workspace_id, id),
  -- '' stands for the cap of concurrent requests, which has no period.
  check ((figure = 'concurrent_requests') = (period = ''))
);
create unique index caps_subject on caps (workspace_id, subject, figure, period, action, (ends_at is not null));

-- What subjects with caps have used in the minute, day, week and month that contain `at`, and in all. There is a row
-- from the first request that is admitted under a cap. Requests and input tokens count at admission, the others at
-- settlement.
create table subject_periods (
  workspace_id text not null,
  subject text collate "C" not null,
  at timestamptz not null,
  requests bigint[] not null,
  input_tokens bigint[] not null,
  output_tokens bigint[] not null,
  spent_micro bigint[] not null,
  primary key (workspace_id, subject)
) with (fillfactor = 50);

-- What running requests of these subjects hold. A row whose grant has ended does not count; 0 stands for a settlement
-- that is about to be posted.
create table subject_holds (
  workspace_id text not null,
  request_id text not null,
  subject text collate "C" not null,
  grant_id bigint not null,
  hold_micro bigint not null,
  primary key (workspace_id, request_id, subject)
);
create index subject_holds_subject on subject_holds (workspace_id, subject);

-- Usage of one subject. All columns are constant, so updates of a row do not change the index.
create index usage_subjects_subject on usage_subjects (workspace_id, subject, unit, start);
